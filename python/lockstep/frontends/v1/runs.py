# SPDX-License-Identifier: Apache-2.0
"""The seam of v1 sessions: BaseSession._do_run, which every Session.run comes to, with flat lists of what is fetched and fed.
On the way there, _run turns what is fed into plain arrays: whether it is this rank's part already is noted before.

MonitoredSession, Supervisor and their hooks run the same Session below."""
import contextlib
import threading

import numpy as np
from tensorflow.python.client import session

from lockstep import hooks, native, say
from lockstep.frontends.v1 import feeds, fetched, parts, plans, state, weights
from lockstep.losses import looks
from lockstep.slices.part import Part

_local = threading.local()


def attach():
    @hooks.wrap(session.BaseSession, "_do_run")
    def do_run(original, self, handle, targets, fetches, feed, options, metadata):
        def run(feed=feed, more=()):
            return original(self, handle, targets, [*fetches, *more], feed, options, metadata)

        if handle is not None or getattr(_local, "is_inside", False):
            return run()
        with _inside():
            return _run(self, plans.plan(self.graph, targets, fetches, feed), feed, run)

    @hooks.wrap(session.BaseSession, "_run")
    def run_fed(original, self, handle, fetches, feed_dict, *rest):
        outer, _local.is_fed_own = getattr(_local, "is_fed_own", False), feeds.is_own(feed_dict)
        try:
            return original(self, handle, fetches, feed_dict, *rest)
        finally:
            _local.is_fed_own = outer


@contextlib.contextmanager
def _inside():
    """Runs that we ask for are not looked at."""
    _local.is_inside = True
    try:
        yield
    finally:
        _local.is_inside = False


def settle(sess):
    """Makes the variables of a session the same on all ranks, before they are saved."""
    while hasattr(sess, "_sess"):  # of MonitoredSession and its kin
        sess = sess._sess
    with _inside():
        weights.settle(sess)
        state.settle(sess)


def _run(sess, plan, feed, run):
    part, more, sources = None, [], []
    if plan.trains:
        weights.settle(sess)
    if getattr(_local, "is_fed_own", False):
        part, feed, sources = _own(sess, plan, feed)
    elif plan.trains:
        part, feed, more, sources = _slices(sess, plan, feed)
    effects = plan.effects(sources) if sources else None
    if effects is None:
        state.settle(sess)
        results = run(feed)
    else:
        counts = state.before(sess, effects)
        results = run(feed, more)
        if more:
            part = Part(*results.pop())
        if not part.is_whole:
            state.after(sess, effects, counts)
            results = fetched.whole(plan, effects, results, part)
    if plan.initialised:
        state.forget(sess, plan.initialised)
        weights.initialised(sess, plan.initialised)
    return results


def _own(sess, plan, feed):
    """(part of the batch that is fed here, feed, its tensors): what lockstep.data gave, to train or to evaluate on."""
    part, feed, cut = feeds.own(feed)
    if part is not None and plan.trains:
        feed = {**feed, parts.state(sess.graph).part_feed.ref(): np.array(parts.numbers(part))}
    return part, feed, cut


def _slices(sess, plan, feed):
    """(part of the feed, feed, what else to fetch, the tensors that are cut)"""
    known = parts.state(sess.graph)
    if native.setting("SHARD") == "off":
        return None, feed, [], []
    groups = [group for group in plan.groups if group.is_batched()]
    has_batch = bool(feeds.batch(feed))
    if groups and (has_batch or len(plan.groups) > 1):
        say.once(f"one step takes {len(plan.groups)} batches from iterators{' and one from feed_dict' if has_batch else ''}; every "
                 "rank computes them whole, which is right but not faster")
        return None, feed, [], []
    if groups:
        group, = groups
        if _must_be_whole(plan, group.tensors):
            return None, feed, [], []
        return None, {**feed, group.switch.ref(): np.array(True)}, [group.numbers], group.tensors
    if not feed and not plan.groups:
        say.once("a training step takes its data from inside of the graph (queues, variables, random numbers), where nothing can be "
                 "cut; every rank computes all of it, which is right but not faster")
    part, cut_feed, cut = feeds.cut(plan, feed)
    if part is None or _must_be_whole(plan, cut):
        return None, feed, [], []
    return part, {**cut_feed, known.part_feed.ref(): np.array(parts.numbers(part))}, [], cut


def _must_be_whole(plan, cut):
    effects = plan.effects(cut)
    if effects.has_time_first:
        say.once("a loop goes over the rows of what the script trains on, so they may be steps of time and not samples; every rank "
                 "computes the whole batch, which is right but not faster")
    elif effects.pick is not None:
        say.once(f"{effects.pick.name} takes rows of the batch by their position, as of points of a boundary; every rank computes the whole "
                 "batch, which is right but not faster")
    elif effects.problem is not None:
        looks.say_whole(effects.problem)
    return effects.has_time_first or effects.pick is not None or effects.problem is not None
