# SPDX-License-Identifier: MIT
"""Scripts that write to what they hold by other names and through others; ``step()`` gives another number each time."""

# name: script
KEPT = {
    "setattr": """
class A: pass
obj=A()
obj.n=0
def step():
    setattr(obj,'n',obj.n+1)
    return float(obj.n)
""",
    "globals()": """
n=0
def step():
    globals()['n']=globals()['n']+1
    return float(n)
""",
    "vars update": """
from types import SimpleNamespace as N
s=N(n=0)
def step():
    vars(s).update(n=s.n+1)
    return float(s.n)
""",
    "dunder dict": """
class A: pass
OBJ=A()
OBJ.n=0
def step():
    OBJ.__dict__['n']+=1
    return float(OBJ.n)
""",
    "param alias": """
STATE={'n':0}
def bump(d): d['n']+=1
def outer(e): bump(e)
def step():
    outer(STATE)
    return float(STATE['n'])
""",
    "kw alias": """
STATE={'n':0}
def bump(*,d): d['n']+=1
def step():
    bump(d=STATE)
    return float(STATE['n'])
""",
    "star args": """
STATE={'n':0}
def bump(*ds):
    for d in ds: d['n']+=1
def step():
    bump(STATE)
    return float(STATE['n'])
""",
    "method param": """
STATE=[0]
class A:
    def go(self, s): s[0]+=1
a=A()
def step():
    a.go(STATE)
    return float(STATE[0])
""",
    "stored in ctor": """
STATE=[0]
class A:
    def __init__(self,s): self.s=s
    def go(self): self.s[0]+=1
OBJ=A(STATE)
def step():
    OBJ.go()
    return float(STATE[0])
""",
    "tuple of lists": """
PAIR=([0],[1])
def step():
    PAIR[0][0]+=1
    return float(PAIR[0][0])
""",
    "unpack": """
PAIR=([0],[1])
def step():
    x,y=PAIR
    x[0]+=1
    return float(PAIR[0][0])
""",
    "walrus": """
LST=[0]
def step():
    if (x:=LST): x[0]+=1
    return float(LST[0])
""",
    "loop over dict": """
TAB={'a':[0]}
def step():
    for k,v in TAB.items(): v[0]+=1
    return float(TAB['a'][0])
""",
    "comp": """
TAB=[[0]]
def step():
    [x.append(1) for x in TAB]
    return float(len(TAB[0]))
""",
    "lambda": """
TAB=[0]
bump=lambda: TAB.append(1)
def step():
    bump()
    return float(len(TAB))
""",
    "getter": """
_S={'n':0}
def get(): return _S
def step():
    get()['n']+=1
    return float(_S['n'])
""",
    "getter caps": """
S_={'n':0}
S=S_
def get(): return S
def step():
    get()['n']+=1
    return float(S['n'])
""",
    "property state": """
class A:
    _n=0
    @property
    def n(self): return type(self)._n
    @n.setter
    def n(self,v): type(self)._n=v
OBJ=A()
def step():
    OBJ.n+=1
    return float(OBJ.n)
""",
    "classmethod": """
class A:
    n=0
    @classmethod
    def go(cls): cls.n+=1; return cls.n
def step(): return float(A.go())
""",
    "subclass attr": """
class B:
    n=0
class A(B): pass
def step():
    A.n+=1
    return float(A.n)
""",
    "metaclass": """
class M(type):
    total=0
    def __call__(cls,*a):
        M.total+=1
        return super().__call__(*a)
class A(metaclass=M): pass
def step():
    A()
    return float(M.total)
""",
    "instances counter": """
class A:
    made=0
    def __init__(self): A.made+=1
def step():
    A()
    return float(A.made)
""",
    "heapq": """
import heapq
Q=[5,3]
def step():
    heapq.heappush(Q,len(Q))
    return float(sum(Q))
""",
    "shuffle caps": """
import random
random.seed(1)
ORDER=list(range(9))
def step():
    random.shuffle(ORDER)
    return float(ORDER[0])
""",
    "np caps": """
import numpy as np
TAB=np.zeros(3)
def step():
    np.add(TAB,1,out=TAB)
    return float(TAB[0])
""",
    "np copyto": """
import numpy as np
TAB=np.zeros(3)
def step():
    np.copyto(TAB,TAB+1)
    return float(TAB[0])
""",
    "np view": """
import numpy as np
TAB=np.zeros((3,3))
def step():
    row=TAB[0]
    row+=1
    return float(TAB[0,0])
""",
    "np T.flat": """
import numpy as np
TAB=np.zeros((3,3))
def step():
    TAB.T.flat[0]+=1
    return float(TAB[0,0])
""",
    "torch view": """
import torch
TAB=torch.zeros(3)
def step():
    TAB.view(-1)[0]+=1
    return float(TAB[0])
""",
    "torch init": """
import torch
torch.manual_seed(0)
TAB=torch.zeros(3)
def step():
    torch.nn.init.normal_(TAB)
    return float(TAB[0])
""",
    "torch out": """
import torch
TAB=torch.zeros(3)
def step():
    torch.add(TAB,1,out=TAB)
    return float(TAB[0])
""",
    "numpy of tensor": """
import torch
TAB=torch.zeros(3)
def step():
    TAB.numpy()[0]+=1
    return float(TAB[0])
""",
    "swap": """
cur,old=[1.0],[2.0]
def step():
    global cur,old
    cur,old=old,cur
    cur[0]+=1
    return cur[0]
""",
    "swap tensors": """
import torch
cur,old=torch.ones(1),torch.zeros(1)
def step():
    global cur,old
    cur,old=old,cur
    cur.add_(1)
    return float(cur-old*3)
""",
    "class deco": """
class count:
    def __init__(self,f): self.f=f; self.n=0
    def __call__(self):
        self.n+=1
        return self.f()+self.n
@count
def step(): return 0.0
""",
    "deco attr": """
import functools
def count(f):
    @functools.wraps(f)
    def inner():
        inner.n+=1
        return f()+inner.n
    inner.n=0
    return inner
@count
def step(): return 0.0
""",
    "nested closure": """
def a():
    n=0
    def b():
        def c():
            nonlocal n
            n+=1
            return float(n)
        return c
    return b()
step=a()
""",
    "two closures": """
def mk():
    n=[0]
    def s(): n[0]+=1; return float(n[0])
    return s
f=mk()
g=mk()
def step(): return f()+(g() if f()>3 else 0)
""",
    "method closure": """
class A:
    def make(self):
        k=0
        def go():
            nonlocal k
            k+=1
            return float(k)
        return go
step=A().make()
""",
}
