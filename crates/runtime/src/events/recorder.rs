//! The way from a controller to the sinks.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
use tokio::{sync::mpsc, task::JoinHandle};
use windlass_core::{Doc, Env};

use super::{
    correlate::CorrelatorOptions,
    event::{Event, EventType, Reference, Source},
    sink::{EventSink, SinkLoop},
};
use crate::{
    metrics::{EventMetrics, Metrics},
    shutdown::Shutdown,
};

/// The most events that wait for one sink; further ones are dropped and counted.
pub const QUEUE_LIMIT: usize = 1000;

/// Passes events on to any number of sinks. Each sink has a queue, a memory and a pace of its own
/// and hears of the events since it joined.
///
/// Clones share the sinks.
#[derive(Clone)]
pub struct EventBroadcaster {
    shared: Arc<Shared>,
}

struct Shared {
    env: Env,
    metrics: EventMetrics,
    shutdown: Shutdown,
    sinks: Mutex<Sinks>,
}

#[derive(Default)]
struct Sinks {
    queues: Vec<Queue>,
    tasks: Vec<JoinHandle<()>>,
    is_closed: bool,
}

/// The events that wait for one sink.
struct Queue {
    events: mpsc::Sender<Arc<Event>>,
    /// The number of events dropped since it was full: logged once when the queue recovers, because
    /// one line for each would fill the log.
    dropped: u64,
}

impl Queue {
    /// Queues an event, unless there is no room. Returns whether it did.
    fn offer(&mut self, event: &Arc<Event>) -> bool {
        if self.events.try_send(Arc::clone(event)).is_err() {
            if self.dropped == 0 {
                tracing::error!(event = %event.name, "unable to record event: too many queued events");
            }
            self.dropped += 1;
            return false;
        }
        // Not at the first free place: the next event may be one too many again.
        if self.events.capacity() >= QUEUE_LIMIT / 2 {
            self.tell_dropped();
        }
        true
    }

    /// Returns true if there is no room, as there was none for the event before.
    fn is_dropping(&self) -> bool {
        self.dropped > 0 && self.events.capacity() == 0
    }

    /// Says how many events were dropped, if there were any.
    fn tell_dropped(&mut self) {
        let dropped = std::mem::take(&mut self.dropped);
        if dropped > 0 {
            tracing::error!(dropped, "events were not recorded: too many queued events");
        }
    }
}

impl EventBroadcaster {
    /// A broadcaster without sinks.
    #[must_use]
    pub fn new(env: Env) -> Self {
        Self::with_metrics(env, EventMetrics::default())
    }

    pub(crate) fn with_metrics(env: Env, metrics: EventMetrics) -> Self {
        let (shutdown, sinks) = (Shutdown::new(), Mutex::default());
        Self {
            shared: Arc::new(Shared {
                env,
                metrics,
                shutdown,
                sinks,
            }),
        }
    }

    /// Stores events from now on. Must be called inside a tokio runtime.
    pub fn start_sink(&self, sink: impl EventSink) {
        self.start_sink_with(sink, CorrelatorOptions::default());
    }

    /// Stores events from now on, under other limits.
    pub fn start_sink_with(&self, sink: impl EventSink, options: CorrelatorOptions) {
        let Shared {
            env,
            metrics,
            shutdown,
            ..
        } = &*self.shared;
        let (env, metrics, shutdown) = (env.clone(), metrics.clone(), shutdown.clone());
        let worker = SinkLoop {
            sink,
            env,
            metrics,
            shutdown,
            options,
        };
        self.start(|events| tokio::spawn(worker.run(events)));
    }

    /// Calls a function with every event from now on.
    pub fn start_watcher(&self, watcher: impl Fn(&Event) + Send + 'static) {
        self.start(|mut events| {
            tokio::spawn(async move {
                while let Some(event) = events.recv().await {
                    watcher(&event);
                }
            })
        });
    }

    /// Logs every event from now on.
    pub fn start_logging(&self) {
        self.start_watcher(|event| {
            let Reference {
                kind,
                api_version,
                namespace,
                name,
                field_path,
                ..
            } = &event.involved;
            tracing::info!(
                object = %windlass_core::Key::new(namespace, name),
                fieldPath = field_path,
                kind,
                apiVersion = api_version,
                r#type = %event.event_type,
                reason = event.reason,
                message = event.message,
                "Event occurred"
            );
        });
    }

    fn start(&self, spawn: impl FnOnce(mpsc::Receiver<Arc<Event>>) -> JoinHandle<()>) {
        let (queue, events) = mpsc::channel(QUEUE_LIMIT);
        let mut sinks = self.shared.sinks.lock();
        if !sinks.is_closed {
            sinks.queues.push(Queue {
                events: queue,
                dropped: 0,
            });
            sinks.tasks.push(spawn(events));
        }
    }

    /// The recorder of a component.
    #[must_use]
    pub fn recorder(&self, component: &str) -> EventRecorder {
        let host = String::new();
        let source = Source {
            component: component.to_owned(),
            host,
        };
        EventRecorder {
            broadcaster: self.clone(),
            source: Arc::new(source),
        }
    }

    /// Takes no more events, and waits until those that are queued were tried once.
    pub async fn shut_down(&self) {
        self.shared.shutdown.trigger();
        let tasks = {
            let mut sinks = self.shared.sinks.lock();
            sinks.is_closed = true;
            sinks.queues.iter_mut().for_each(Queue::tell_dropped);
            sinks.queues.clear();
            std::mem::take(&mut sinks.tasks)
        };
        for task in tasks {
            if let Err(error) = task.await {
                tracing::error!(%error, "an event sink did not end well");
            }
        }
    }

    /// Ends at once. Events that are queued are lost.
    pub(crate) fn abort(&self) {
        self.shared.shutdown.trigger();
        let mut sinks = self.shared.sinks.lock();
        sinks.is_closed = true;
        sinks.queues.clear();
        sinks.tasks.drain(..).for_each(|task| task.abort());
    }

    /// The number of events that wait for the slowest sink.
    #[must_use]
    pub fn pending(&self) -> usize {
        let sinks = self.shared.sinks.lock();
        let waiting = |queue: &Queue| queue.events.max_capacity() - queue.events.capacity();
        sinks.queues.iter().map(waiting).max().unwrap_or(0)
    }

    /// The metrics of the events.
    #[must_use]
    pub fn metrics(&self) -> &Metrics {
        self.shared.metrics.all()
    }

    /// Counts an event that no sink has room for, before it is put together. The first one that is
    /// dropped is not counted here: the log names it.
    fn drops(&self, component: &str) -> bool {
        let mut sinks = self.shared.sinks.lock();
        let is_dropping = !sinks.queues.is_empty() && sinks.queues.iter().all(Queue::is_dropping);
        if is_dropping {
            for queue in &mut sinks.queues {
                queue.dropped += 1;
                self.shared.metrics.dropped(component);
            }
        }
        is_dropping
    }

    fn send(&self, event: Event) {
        let component = event.source.component.clone();
        let event = Arc::new(event);
        let mut sinks = self.shared.sinks.lock();
        if sinks.is_closed {
            self.shared.metrics.dropped(&component);
            tracing::error!(event = %event.name, "unable to record event: the recorder is shut down");
            return;
        }
        for queue in &mut sinks.queues {
            if !queue.offer(&event) {
                self.shared.metrics.dropped(&component);
            }
        }
    }
}

impl fmt::Debug for EventBroadcaster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sinks = self.shared.sinks.lock();
        f.debug_struct("EventBroadcaster")
            .field("sinks", &sinks.queues.len())
            .finish_non_exhaustive()
    }
}

/// Records events in the name of one component. Recording never waits.
#[derive(Clone, Debug)]
pub struct EventRecorder {
    broadcaster: EventBroadcaster,
    source: Arc<Source>,
}

impl EventRecorder {
    /// The same component on a machine of this name.
    #[must_use]
    pub fn on_host(mut self, host: &str) -> Self {
        Arc::make_mut(&mut self.source).host = host.to_owned();
        self
    }

    /// Tells about an object that says its own kind.
    pub fn event(&self, object: &Doc, event_type: EventType, reason: &str, message: &str) {
        if self.broadcaster.drops(&self.source.component) {
            return;
        }
        self.event_on(Reference::to(object), event_type, reason, message);
    }

    /// Tells about an object by reference.
    pub fn event_on(&self, object: Reference, event_type: EventType, reason: &str, message: &str) {
        self.annotated(object, &[], event_type, reason, message);
    }

    /// Tells about an object, with further facts.
    pub fn annotated(
        &self,
        object: Reference,
        annotations: &[(&str, &str)],
        event_type: EventType,
        reason: &str,
        message: &str,
    ) {
        if object.kind.is_empty() || object.name.is_empty() {
            tracing::error!(
                ?object,
                reason,
                "could not construct a reference, no event is recorded"
            );
            return;
        }
        let env = &self.broadcaster.shared.env;
        let mut event = Event::new(env, &self.source, object, event_type, reason, message);
        let pairs = annotations
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
        event.annotations = pairs.collect();
        self.broadcaster.send(event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::logs::tests::Lines;

    fn event(env: &Env) -> Arc<Event> {
        let involved = Reference::default();
        let source = Source::default();
        let event = Event::new(
            env,
            &source,
            involved,
            EventType::Normal,
            "Killing",
            "again",
        );
        Arc::new(event)
    }

    #[test]
    fn dropping_is_logged_once_when_it_begins_and_once_when_it_ends() {
        let lines = Lines::default();
        let logs = tracing_subscriber::fmt()
            .with_writer(lines.clone())
            .finish();
        let logged = || {
            let text = String::from_utf8_lossy(&lines.0.lock()).into_owned();
            let about = text.lines().filter(|it| it.contains("too many queued"));
            about.map(str::to_owned).collect::<Vec<_>>()
        };
        let (sender, mut receiver) = mpsc::channel(QUEUE_LIMIT);
        let mut queue = Queue {
            events: sender,
            dropped: 0,
        };
        let event = event(&Env::seeded(1));
        let _logs = tracing::subscriber::set_default(logs);
        let fits = (0..QUEUE_LIMIT + 300).filter(|_| queue.offer(&event));
        assert_eq!(fits.count(), QUEUE_LIMIT);
        assert_eq!(logged().len(), 1, "when it begins");
        // A sink that takes one event at a time makes room for one at a time.
        for _ in 0..100 {
            assert!(receiver.try_recv().is_ok() && queue.offer(&event) && !queue.offer(&event));
        }
        assert_eq!(logged().len(), 1, "while it goes on");
        while receiver.try_recv().is_ok() {}
        assert!(queue.offer(&event) && queue.offer(&event));
        let logged = logged();
        assert_eq!(logged.len(), 2, "{logged:?}");
        assert!(logged[1].contains("400"), "{logged:?}");
    }

    #[tokio::test]
    async fn what_nobody_has_room_for_is_counted_and_not_put_together() {
        let broadcaster = EventBroadcaster::new(Env::seeded(1));
        broadcaster.start(|events| {
            tokio::spawn(async move {
                let _held = events;
                std::future::pending::<()>().await;
            })
        });
        let recorder = broadcaster.recorder("test");
        let pod = windlass_core::doc!({
            "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "a", "namespace": "x" }
        });
        for _ in 0..QUEUE_LIMIT + 5 {
            recorder.event(&pod, EventType::Normal, "Killing", "again");
        }
        assert_eq!(broadcaster.pending(), QUEUE_LIMIT);
        assert_eq!(broadcaster.shared.sinks.lock().queues[0].dropped, 5);
    }
}
