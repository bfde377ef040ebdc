"""Kubernetes objects of one run, built by pure functions as plain dicts.

Everything takes a `RunScope` (`manifests.scope`) and frozen records, and returns what an API server is sent. Names and
labels are in `manifests.names`; what every pod has in common, and why, in `manifests.pods`.

    documents   the run's ConfigMaps and its Secret
    mounts      what programs of Proctor's own find below /etc/proctor
    jobs        seeding and grading
    gateway     the only door
    toolbox     servers under test, and what provisions them
    sandbox     one attempt's agent
    canary      who tries, before any agent, what must not be possible
    policies    who may talk to whom
"""
