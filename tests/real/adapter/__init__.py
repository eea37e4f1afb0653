"""The adapter behind the real aggregator, asked by the real kubectl and the real HPA controller."""
