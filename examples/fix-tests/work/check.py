from solution import add

assert add(1, 2) == 3, f"add(1, 2) is {add(1, 2)}, not 3"
assert add(-1, 1) == 0
