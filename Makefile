# Two commands: `make demo` shows what xbert does, `make test` checks that it does it. Both install what they need into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO := demo

define sentences
	echo; echo "Three sentences, tagged:"; \
	printf '%s\n' "a large wild cat with a striped coat that hunts deer" \
	  "a person who repairs shoes and boots" \
	  "to move quickly on foot over a long distance" > $(DEMO)/sentences.txt
endef

.PHONY: demo demo-neural test lint bench clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=24"

$(VENV)/.demo: setup.cfg pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[demo]'
	touch $@

$(VENV)/.neural: setup.cfg pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cpu,demo]'
	touch $@

$(VENV)/.test: setup.cfg pyproject.toml constraints.txt | $(BIN)/python
	$(BIN)/python -m pip install --quiet -c constraints.txt -e '.[cpu,test]'
	touch $@

# A reverse dictionary: from a definition to the concepts above the word it defines, learnt from WordNet.
demo: $(VENV)/.demo
	$(BIN)/python examples/wordnet.py $(DEMO)
	$(BIN)/xbert init linear --train train.jsonl --labels labels.jsonl > $(DEMO)/wordnet.toml
	$(BIN)/xbert run $(DEMO)/wordnet.toml
	@$(call sentences)
	@$(BIN)/xbert predict $(DEMO)/wordnet.toml $(DEMO)/sentences.txt -k 5 | \
	  $(BIN)/python examples/show_tags.py $(DEMO)/sentences.txt

# The same with X-BERT: an encoder is fine-tuned, which takes its time.
demo-neural: $(VENV)/.neural
	$(BIN)/python examples/wordnet.py $(DEMO)
	$(BIN)/xbert init x-bert --train train.jsonl --labels labels.jsonl > $(DEMO)/wordnet-neural.toml
	$(BIN)/xbert run $(DEMO)/wordnet-neural.toml $(NEURAL)
	@$(call sentences)
	@$(BIN)/xbert predict $(DEMO)/wordnet-neural.toml $(DEMO)/sentences.txt -k 5 | \
	  $(BIN)/python examples/show_tags.py $(DEMO)/sentences.txt

test: $(VENV)/.test lint
	$(BIN)/python -m pytest -q -n 2 --dist loadfile

# mypy does not see an editable install of a package whose root is the checkout, so it is shown one through a link.
lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	folder=$$(mktemp -d) && ln -s "$(CURDIR)" "$$folder/xbert" && cd "$$folder" && \
	  "$(abspath $(BIN)/mypy)" --config-file xbert/setup.cfg --cache-dir "$(CURDIR)/.mypy_cache" -m xbert -m xbert.cli -p xbert.artifacts -p xbert.stages -p xbert.pipeline; \
	  status=$$?; rm -r "$$folder"; exit $$status

# xbert beside its peers on DATA (a folder with train.jsonl and test.jsonl); PEERS_HOME says where the peers are installed, BENCH
# holds further options of side_by_side.py, such as BENCH="--slow-rounds 1".
bench: $(VENV)/.test
	@test -n "$(DATA)" || { echo "usage: make bench DATA=folder" >&2; exit 2; }
	@test -d "$${PEERS_HOME:-$$HOME/.cache/xbert-peers}" || bash benchmarks/install_peers.sh
	$(BIN)/python benchmarks/side_by_side.py "$(DATA)" --out docs/benchmarks $(BENCH)
	$(BIN)/python benchmarks/side_by_side.py --report docs/benchmarks --out docs/benchmarks.md

clean:
	rm -rf $(VENV) $(DEMO) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache
