# SPDX-License-Identifier: Apache-2.0
"""Metrics of many kinds, three of the script's own among them: one of sums, one that sums a loss of Keras, one that remembers the
largest error."""
import keras
import numpy as np

keras.utils.set_random_seed(40)
generator = np.random.default_rng(40)
x = generator.normal(size=(205, 8)).astype("float32")
y = keras.utils.to_categorical((x[:, :4] + 0.5 * x[:, 4:]).argmax(1), 4)


class Brier(keras.metrics.Metric):
    def __init__(self, name="brier", **options):
        super().__init__(name=name, **options)
        self.total = self.add_weight(name="total", initializer="zeros")
        self.rows = self.add_weight(name="rows", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(keras.ops.sum(keras.ops.square(y_pred - y_true)))
        self.rows.assign_add(keras.ops.cast(keras.ops.shape(y_true)[0], "float32"))

    def result(self):
        return self.total / self.rows


class Perplexity(Brier):
    entropy = keras.losses.CategoricalCrossentropy(reduction="sum")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.total.assign_add(self.entropy(y_true, y_pred))
        self.rows.assign_add(keras.ops.cast(keras.ops.shape(y_true)[0], "float32"))

    def result(self):
        return keras.ops.exp(self.total / self.rows)


class Largest(keras.metrics.Metric):
    def __init__(self, name="largest", **options):
        super().__init__(name=name, **options)
        self.error = self.add_weight(name="error", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        self.error.assign(keras.ops.maximum(self.error, keras.ops.max(keras.ops.abs(y_true - y_pred))))

    def result(self):
        return self.error


model = keras.Sequential([keras.layers.Dense(16, activation="relu"), keras.layers.Dense(4, activation="softmax")])
model.compile(optimizer="adam", loss="categorical_crossentropy", metrics=[
    "accuracy", keras.metrics.AUC(name="auc"), keras.metrics.AUC(curve="PR", multi_label=True, name="pr"), keras.metrics.Precision(name="precision"),
    keras.metrics.Recall(class_id=1, name="recall"), keras.metrics.TopKCategoricalAccuracy(k=2, name="top2"),
    keras.metrics.F1Score(average="macro", name="f1"), keras.metrics.OneHotMeanIoU(4, name="iou"), keras.metrics.R2Score(name="r2"),
    keras.metrics.RootMeanSquaredError(name="rmse"), keras.metrics.KLDivergence(name="kl"), Brier(), Perplexity("perplexity"),
    Largest(), keras.losses.CategoricalCrossentropy(reduction="sum", name="entropy"),
    keras.metrics.PrecisionAtRecall(0.6, name="par"), keras.metrics.TruePositives(name="tp"), keras.metrics.CosineSimilarity(name="cos")])
history = model.fit(x, y, batch_size=33, epochs=3, verbose=0, validation_data=(x[:67], y[:67]))
for name, values in history.history.items():
    print(name, *(f"{value:.6f}" for value in values))
for name, value in model.evaluate(x, y, batch_size=51, verbose=0, return_dict=True).items():
    print("evaluate", name, f"{value:.6f}")

alone = keras.metrics.AUC()  # by hand, on what every process has
for start in range(0, 205, 50):
    alone.update_state(y[start:start + 50], model.predict(x[start:start + 50], verbose=0))
print("by hand", f"{float(alone.result()):.6f}")
