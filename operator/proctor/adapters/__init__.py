"""The outside world, one package per neighbour; each translates foreign exceptions once."""
