module trimtab.dev/bench/standin

go 1.24
