"""What an audit, or anyone who extends the package, may look at in a continual release. All of it is public.

Every mechanism has

    parameters, anew(source)   what it was made with; the same mechanism again, with noise that the caller decides
    step, to_bytes, from_bytes what it publishes at a tick, and its state
    guarantee, error(t)        what it claims

`Counter.noises_of_an_event()` lists, for each way in which an event can come, the `CorrelatedNoise`s that hide it: the
`Factor` (its recurrence, its declared sensitivity) and the sigma of the independent noises. `Counter.factor_for` makes
them.

`Histogram.scheme` is what turns counts into a tick's release, and `make_scheme` makes one. `Factored` schemes (`Hidden`
ones, with a `cut` for each tick) and `Sparse` ones have a `factor` and a `sigma`; a `Meta` scheme has `release`, which
publishes a node, once, and `levels`, the nodes that one event is in. `not_private_counts()` is what the noise hides.

`unit` says whether an event is hidden or a person, and `Histogram.most_items` how many counts either may raise;
`changes` says how often a person enters and leaves a window, and `new_people` begins to keep who counts.

`HeavyHitters.release_node` releases the sketch of a node, once; an event is in one node of each of `levels`, or, where
its item is public, in one of the counters of `HeavyHitters.discovered`; `HeavyHitters.take` decides which.
`HeavyHitters.plan` has the levels, the noise and the cut of the nodes of this many ticks, and `new_sketches` begins
them.

Without a horizon epoch e has the ticks from 2^e on, and there are `EPOCHS` of them. Factors are `Doubling`: `noises`
has what hides an event of an epoch, `tick_share` what a tick may spend on hidden items. Trees are `Restarted`: `make`
makes that of an epoch.
"""

from discreet.continual._base import Continual
from discreet.continual._doubling import EPOCHS, Doubling, epoch_of
from discreet.continual._events import event_counts
from discreet.continual._factors import CorrelatedNoise, EachTick, Factor, Tree
from discreet.continual._schemes import Factored, Hidden, Meta, Restarted, Scheme, Sparse

__all__ = [
    "EPOCHS",
    "Continual",
    "CorrelatedNoise",
    "Doubling",
    "EachTick",
    "Factor",
    "Factored",
    "Hidden",
    "Meta",
    "Restarted",
    "Scheme",
    "Sparse",
    "Tree",
    "epoch_of",
    "event_counts",
]
