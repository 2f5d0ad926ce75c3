# SPDX-License-Identifier: MIT
"""More scripts as in ``checkpoint_ways``."""

# name: script
KEPT = {
    "bound method": """
class A:
    def __init__(self): self.n=0
    def step(self):
        self.n+=1
        return float(self.n)
step=A().step
""",
    "partial obj": """
import functools
class A:
    def __init__(self): self.n=0
    def go(self,k):
        self.n+=k
        return float(self.n)
go=functools.partial(A().go,2)
def step(): return go()
""",
    "functions in dict": """
def mk():
    n=[0]
    def s(): n[0]+=1; return float(n[0])
    return s
F={'a':mk()}
def step(): return F['a']()
""",
    "functions in obj": """
def mk():
    n=[0]
    def s(): n[0]+=1; return float(n[0])
    return s
class A: pass
obj=A()
obj.f=mk()
def step(): return obj.f()
""",
    "function in module field": """
import torch
def mk():
    n=[0]
    def s(): n[0]+=1; return float(n[0])
    return s
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l=torch.nn.Linear(1,1)
        self.f=mk()
net=Net()
def step(): return net.f()
""",
    "hook": """
import torch
torch.manual_seed(0)
net=torch.nn.Linear(1,1)
seen=[]
SEEN=[]
net.register_forward_hook(lambda m,i,o: SEEN.append(1))
def step():
    net(torch.ones(1,1))
    return float(len(SEEN))
""",
    "bytearray caps": """
B=bytearray(b'a')
def step():
    B[0]+=1
    return float(B[0])
""",
    "UserDict": """
import collections
u=collections.UserDict(n=0)
def step():
    u['n']+=1
    return float(u['n'])
""",
    "ChainMap": """
import collections
u=collections.ChainMap({'n':0})
def step():
    u['n']+=1
    return float(u['n'])
""",
    "OrderedDict order": """
import collections
O=collections.OrderedDict(a=1,b=2,c=3)
def step():
    O.move_to_end(next(iter(O)))
    return float(list(O.values())[0])
""",
    "set caps": """
S={1}
def step():
    S.add(len(S)+1)
    return float(sum(S))
""",
    "enum attr": """
import enum
class E(enum.Enum):
    A=1
E.A.n=0
def step():
    E.A.n+=1
    return float(E.A.n)
""",
    "module buffer None": """
import torch
class N(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.h=None
        self.l=torch.nn.Linear(1,1)
    def forward(self,x):
        self.h=x if self.h is None else self.h+x
        return self.h
net=N()
def step(): return float(net(torch.ones(1)))
""",
    "module class attr": """
import torch
class N(torch.nn.Module):
    total=0
    def forward(self,x):
        N.total+=1
        return x
net=N()
def step():
    net(1)
    return float(N.total)
""",
    "list of modules in field": """
import torch
torch.manual_seed(0)
class N(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.ls=[torch.nn.Linear(1,1)]
        self.k=torch.nn.Linear(1,1)
net=N()
def step():
    with torch.no_grad(): net.ls[0].weight.add_(1)
    return float(net.ls[0].weight)
""",
    "inherit list": """
class H(list):
    def __init__(self): super().__init__(); self.n=0
    def push(self,x):
        self.append(x); self.n+=1
HIST=H()
def step():
    HIST.push(1)
    return float(len(HIST)+HIST.n)
""",
    "del global": """
tab={'a':1,'b':2,'c':3,'d':4,'e':5,'f':6,'g':7,'h':8}
TABS=dict(tab)
def step():
    del TABS[max(TABS)]
    return float(len(TABS))
""",
    "default obj": """
class A:
    n=0
def step(a=A()):
    a.n+=1
    return float(a.n)
""",
    "staticmethod": """
class A:
    s={'n':0}
    @staticmethod
    def go():
        A.s['n']+=1
        return float(A.s['n'])
def step(): return A.go()
""",
    "instance alias": """
class A:
    def __init__(self): self.d={'n':0}
OBJ=A()
def step():
    d=OBJ.d
    d['n']+=1
    return float(OBJ.d['n'])
""",
    "with as": """
import contextlib
STATE={'n':0}
@contextlib.contextmanager
def held():
    yield STATE
def step():
    with held() as s: s['n']+=1
    return float(STATE['n'])
""",
    "yield state": """
STATE={'n':0}
def each():
    yield STATE
def step():
    for s in each(): s['n']+=1
    return float(STATE['n'])
""",
    "map": """
STATE=[[0]]
def bump(x): x[0]+=1
def step():
    list(map(bump,STATE))
    return float(STATE[0][0])
""",
    "callback": """
STATE=[0]
def bump(x): x[0]+=1
def apply(f,x): f(x)
def step():
    apply(bump,STATE)
    return float(STATE[0])
""",
    "dict of fn": """
STATE=[0]
def bump(x): x[0]+=1
OPS={'b':bump}
def step():
    OPS['b'](STATE)
    return float(STATE[0])
""",
    "operator": """
import operator
D={'n':0}
def step():
    operator.setitem(D,'n',D['n']+1)
    return float(D['n'])
""",
    "dict.update static": """
D={'n':0}
def step():
    dict.update(D,n=D['n']+1)
    return float(D['n'])
""",
    "list.append static": """
L=[]
def step():
    list.append(L,1)
    return float(len(L))
""",
    "bound alias": """
L=[]
push=L.append
def step():
    push(1)
    return float(len(L))
""",
    "local bound": """
L=[]
def step():
    push=L.append
    push(1)
    return float(len(L))
""",
    "thread": """
import threading
L=[]
def work(): L.append(1)
def step():
    t=threading.Thread(target=work); t.start(); t.join()
    return float(len(L))
""",
    "thread args": """
import threading
L=[]
def work(x): x.append(1)
def step():
    t=threading.Thread(target=work,args=(L,)); t.start(); t.join()
    return float(len(L))
""",
    "matmul iop": """
import numpy as np
M=np.eye(2)*2
def step():
    global_m=M
    global_m*=2
    return float(M[0,0])
""",
    "match": """
L=[0]
def step():
    match L:
        case x: x[0]+=1
    return float(L[0])
""",
    "try import cnt": """
try:
    n=0
except Exception: pass
def step():
    global n
    try: n+=1
    finally: pass
    return float(n)
""",
    "type()": """
import torch
class A:
    n=0
    def go(self):
        self.__class__.n+=1
        return float(A.n)
a_=A()
def step(): return a_.go()
""",
    "defaultdict caps read": """
from collections import defaultdict
D=defaultdict(list)
def step():
    D[len(D)]
    return float(len(D))
""",
    "Random subclass": """
import random
class R(random.Random): pass
RNG=R(3)
def step(): return RNG.random()
""",
    "np rng caps": """
import numpy as np
RNG=np.random.default_rng(1)
def step(): return float(RNG.random())
""",
    "secrets tuple nested": """
T=(1,[0],{'a':[0]})
def step():
    T[2]['a'].append(1)
    return float(len(T[2]['a']))
""",
    "frozen dataclass": """
import dataclasses
@dataclasses.dataclass(frozen=True)
class C:
    n:int=0
c=C()
def step():
    global c
    c=dataclasses.replace(c,n=c.n+1)
    return float(c.n)
""",
    "namedtuple": """
import collections
P=collections.namedtuple('P','n')
p=P(0)
def step():
    global p
    p=p._replace(n=p.n+1)
    return float(p.n)
""",
    "typing NamedTuple caps": """
from typing import NamedTuple
class P(NamedTuple):
    xs:list
PP=P([0])
def step():
    PP.xs[0]+=1
    return float(PP.xs[0])
""",
}
