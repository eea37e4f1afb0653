"""The fuzzer: inputs of strangers, mutated towards code that no earlier input reached.

    engine      coverage-guided mutation of bytes, in plain Python and repeatable by a seed
    targets     one function per way in; each checks what must hold for any bytes
    references  second, simple readings of the same texts, which the answers are compared with

`make fuzz` runs it for minutes. The tests run every kept input and a few hundred new ones. Inputs that found something are in
`tests/data/fuzz/TARGET`.
"""
