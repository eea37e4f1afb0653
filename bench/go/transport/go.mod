module trimtab.dev/bench/transport

go 1.21
