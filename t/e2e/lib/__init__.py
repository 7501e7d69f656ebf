"""What the black-box tests share. Python 3.9 or later, standard library only."""
