"""The types of objects.

`shapes` holds the fields, types and merge rules of every kind and drops unknown fields. `protobuf` decodes the bodies of Go
clients. The data files are renewed by `tools/lab_schemas.py` and `tools/lab_protobuf.py`.
"""
