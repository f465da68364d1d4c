# SPDX-License-Identifier: Apache-2.0
"""The fit() of Keras 3 and of tf_keras, told to fits.py.

Seams: fit itself; CallbackList.on_train_begin; and what gives the batches of an epoch: EpochIterator's generator (Keras 3),
DataHandler.enumerate_epochs and steps (tf_keras).

A fit that goes on draws the batches that it had used, instead of jumping over them: that leaves every shuffle, generator
and iterator where it was, whatever it is made of.  The first of them is computed: then all variables exist, those of the
optimizer too, made in the order of the first run."""
import inspect
import itertools

from lockstep import hooks
from lockstep.restart import contents, fits, logs
from lockstep.slices import current

_PAST_ALL = 1 << 30  # an epoch that no fit() comes to


def attach_keras():
    from keras.src import backend
    if fits.state is None or backend.backend() != "tensorflow":
        return
    from keras.src.backend.tensorflow import trainer
    from keras.src.callbacks import callback_list
    iterator_class = trainer.TFEpochIterator
    name = "_enumerate_iterator" if hasattr(iterator_class, "_enumerate_iterator") else "enumerate_epoch"
    original_batches = getattr(iterator_class, name)
    _attach_fit(trainer.TensorFlowTrainer, begins_later=True)
    _attach_begin(callback_list.CallbackList)

    @hooks.wrap(iterator_class, "__init__")
    def make(original, self, *args, **kwargs):
        original(self, *args, **kwargs)
        fit = fits.current()
        if fit is not None and fit.source is None:  # the first that a fit() makes gives the batches to train on
            fit.source = _KerasSource(self, original_batches)

    @hooks.wrap(iterator_class, name)
    def batches(original, self):
        fit = fits.current()
        if fit is None or not fit.is_begun or fit.source.iterator is not self:
            return original(self)
        return _told(fit, original(self))


def attach_tf_keras():
    if fits.state is None:
        return
    from tf_keras.src import callbacks
    from tf_keras.src.engine import data_adapter, training
    original_steps = data_adapter.DataHandler.steps
    _attach_fit(training.Model, begins_later=False)
    _attach_begin(callbacks.CallbackList)

    @hooks.wrap(data_adapter.DataHandler, "enumerate_epochs")
    def enumerate_epochs(original, self):
        fit = fits.current()
        if fit is None or not fit.is_begun or fit.source is not None:
            return original(self)
        fit.source = _TfKerasSource(self, original_steps)
        return _tf_keras_epochs(fit, original(self))

    @hooks.wrap(data_adapter.DataHandler, "steps")
    def steps(original, self):
        fit = fits.current()
        if fit is None or getattr(fit.source, "handler", None) is not self:
            return original(self)
        return _told(fit, original(self))


def _attach_fit(model_class, begins_later):
    """begins_later: fit() is told to begin with the epoch in which it was."""
    signature = inspect.signature(model_class.fit)

    @hooks.wrap(model_class, "fit")
    def fit(original, self, *args, **kwargs):
        current = fits.fit_begins(self)
        if current is None:
            return original(self, *args, **kwargs)
        given = signature.bind_partial(self, *args, **kwargs).arguments
        current.first_epoch = given.get("initial_epoch", 0)
        if current.snapshot is not None and begins_later:
            args, kwargs = (), {**given, "initial_epoch": _PAST_ALL if current.has_ended else current.first_epoch + current.position[0]}
            del kwargs["self"]
        before = getattr(self, "_initial_epoch", None)
        try:
            history = original(self, *args, **kwargs)
        except BaseException:
            fits.fit_fails()
            raise
        finally:
            if before is None and hasattr(self, "_initial_epoch"):
                self._initial_epoch = None
        fits.fit_ends(current)
        return history


def _attach_begin(callback_list_class):
    @hooks.wrap(callback_list_class, "on_train_begin")
    def on_train_begin(original, self, *args, **kwargs):
        fit = fits.current()
        if fit is None or fit.is_begun:
            return original(self, *args, **kwargs)
        fit.callbacks = self.callbacks
        if fit.snapshot is not None:
            logs.go_on(fit.callbacks, _PAST_ALL if fit.has_ended else fit.first_epoch + fit.position[0])
        original(self, *args, **kwargs)
        fit.is_begun = True
        if fit.snapshot is not None and fit.source is not None:
            _go_on_in_keras(fit)


# ---- where batches come from ---------------------------------------------------------------------------------

class _KerasSource:
    """batches(): items of one epoch; draw(item): what one call of the train function takes; catch(): the end of data."""

    def __init__(self, iterator, batches):
        self.iterator, self._batches = iterator, batches
        self.catch = iterator.catch_stop_iteration

    def batches(self):
        return self._batches(self.iterator)

    def data(self, item):
        return item[-1]

    def num_batches(self):
        return self.iterator.steps_per_execution

    def knows_states(self):
        """Are the random states at the beginning of an epoch those that the script left?  Not where a generator goes on from
        the epoch before: how far it was read ahead is chance."""
        return self.iterator.steps_per_epoch is None


class _TfKerasSource:
    def __init__(self, handler, steps):
        self.handler, self._steps = handler, steps
        self.catch = handler.catch_stop_iteration
        self.iterator = None

    def batches(self):
        return self._steps(self.handler)

    def data(self, _item):
        return self.iterator

    def num_batches(self):
        return self.handler.step_increment + 1

    def knows_states(self):
        from tf_keras.src.engine import data_adapter
        adapter = self.handler._adapter  # arrays go on from epoch to epoch too, but TensorFlow alone draws from them
        return adapter.should_recreate_iterator() or isinstance(adapter, data_adapter.TensorLikeDataAdapter)


def _told(fit, items):
    """The batches of one epoch on their way to fit(); fits.py hears of each."""
    if fit.batches > 0:
        fit.epochs += 1  # the epoch before ended because its data did
    fits.epoch_begins(fit)
    if fit.snapshot is not None and fit.epochs == fit.position[0]:
        _draw_to_position(fit, items)
    for item in items:
        fits.step(fit, fit.first_epoch + fit.epochs)
        fit.batches += 1
        yield item
    fit.epochs, fit.batches = fit.epochs + 1, 0


def _draw_to_position(fit, items):
    """The batches of the interrupted epoch that were used; then everything is as it was."""
    if fit.source.knows_states():
        fit.epoch_states = fit.snapshot.meta["random"]["epoch"]
        contents.put_random_states(fit.epoch_states)
    for item in itertools.islice(items, fit.position[1]):
        _draw(fit, item)
        fit.batches += 1
    fits.restore(fit)
    fits.is_there(fit)


def _draw_epoch(fit, num_items=None):
    """A whole epoch, or its first items."""
    with fit.source.catch():
        for item in itertools.islice(fit.source.batches(), num_items):
            _draw(fit, item)


def _draw(fit, item):
    data = fit.source.data(item)
    if not fit.is_computed:
        fit.is_computed = True
        fit.model.train_function(data)
        return
    with current.scope(None):
        for _ in range(fit.source.num_batches()):
            next(data)


# ---- going on ------------------------------------------------------------------------------------------------

def _go_on_in_keras(fit):
    """Before the first epoch: those that are done are drawn."""
    epochs, batches = fit.position
    for _ in range(epochs):
        _draw_epoch(fit)
    fit.epochs = epochs
    if fit.has_ended:
        _draw_epoch(fit, batches)
        fits.restore(fit)  # on_train_end sees it
    if getattr(fit.model, "_initial_epoch", None):  # a BackupAndRestore of the script has found its own file
        fit.model._initial_epoch = None


def _tf_keras_epochs(fit, epochs):
    """(epoch, iterator) pairs on their way to fit()."""
    if fit.snapshot is not None:
        fit.source.handler._initial_epoch, fit.source.handler._initial_step = fit.first_epoch, 0
    num_epochs = fit.source.handler._epochs - fit.first_epoch
    while not (fit.has_ended and (fit.epochs, 0) == fit.position and fit.epochs < num_epochs):
        try:
            epoch, fit.source.iterator = next(epochs)
        except StopIteration:  # after the last on_epoch_end of the data
            if not fit.has_ended:
                return
            break
        if fit.snapshot is None or (fit.epochs == fit.position[0] and not fit.has_ended):
            yield epoch, fit.source.iterator
        elif fit.epochs < fit.position[0]:
            _draw_epoch(fit)
            fit.epochs += 1
        else:
            _draw_epoch(fit, fit.position[1])
            break
    fits.restore(fit)
