"""Requests to an OpenAI-compatible endpoint: each stored when it comes back, none paid twice (spec §8).

What a row goes through::

    task.py      report -> the words of a request, answer -> findings      (another task: another file)
    request.py   words -> body and key
    run.py       a pool of workers takes what the store lacks
    client.py    one request: waits, circuit, retries                      (flow.py, transport.py)
    answer.py    what came back -> an outcome                          (judge.py: with the task's reading)
    steps.py     the outcomes of a row -> what to do next
    store.py     every attempt, on disk
    export.py    the store -> one row a report, in input order
"""
