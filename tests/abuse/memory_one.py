"""Case D18: one process takes all it can get."""
blocks = []
while True:
    blocks.append(bytearray(16 << 20))
