"""The properties that every cage has, P01 to P60, each measured in and beside a live cage.

`probe` is what a cage is asked from inside; the modules named after groups judge its answers, what the engine says and
how trials ended, and are pure; `trials` are programs whose end is the evidence; `measure` makes the cages. A property
holds, fails, or is not applicable, and then says why.
"""
