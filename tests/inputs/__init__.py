"""Bad inputs, and good ones that look bad: what must be refused clearly, what must be taken, and where each is sent.

`catalogue` is the whole list, as data; `doors` sends it to `trimtab validate`, to a lab and to the real kube-apiserver,
both with our definitions, webhooks and adapter; `clarity` says whether an answer was a clear refusal.
"""
