"""How a ranking is measured: used by the evaluation, and by whatever chooses on the validation split."""
