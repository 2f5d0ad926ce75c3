def f(): return [1.0, 2.0]
