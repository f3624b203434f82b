"""Four questions of the report, asked of our trainer on a CPU: `make ablations`.

`prose` and `facts` make what is learnt, `learning` trains one model, `cells` keeps what each run
gave; `optimisers`, `growth`, `sparsity` and `rephrasing` are the questions, each with the cells it
wants and the section that it writes; `driver` runs them, `report` and `plots` tell what came out.
"""
