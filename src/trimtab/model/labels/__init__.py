"""Labels and label selectors.

`names` holds the rules of label keys and values. A `requirement` is one condition on labels, a `selector` all of them;
`parser` reads the text form. `index` finds the pods of a selector, and the selectors of a pod.
"""
