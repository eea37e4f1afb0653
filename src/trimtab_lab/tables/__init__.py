"""Tables, which `kubectl get` prints: `tables` turns objects into rows, `rows` has the columns of built-in kinds."""
