//! Event handlers: calls for objects that are added, updated and deleted.

use std::{future::Future, marker::PhantomData, sync::Arc};

use crate::object::{Deleted, Obj};

/// A handler of the changes of an informer's objects.
///
/// The calls for one handler come one after another: an object is added once, updated any number
/// of times and deleted once, and the `old` of an update is what the call before had last. The
/// cache is already at least as new when a call comes. A handler may wait, and other handlers do
/// not wait for it; but the usual handler only puts the key into a queue.
///
/// A handler that is far behind gets fewer calls: several updates of an object become one. It still
/// sees that an object was added, marked for deletion and deleted, so that it can count them. Only
/// when it is behind by twice its buffer are objects left out that came and went.
///
/// A panic is counted, and the notification is taken for handled.
pub trait Handler<K>: Send + Sync + 'static {
    /// An object is there. `is_initial` says that it was there when this handler started.
    fn on_add(&self, object: Obj<K>, is_initial: bool) -> impl Future<Output = ()> + Send {
        let _ = (object, is_initial);
        async {}
    }

    /// An object has changed; or, if both are the same, a resync repeats it.
    fn on_update(&self, old: Obj<K>, new: Obj<K>) -> impl Future<Output = ()> + Send {
        let _ = (old, new);
        async {}
    }

    /// An object is gone.
    fn on_delete(&self, deleted: Deleted<K>) -> impl Future<Output = ()> + Send {
        let _ = deleted;
        async {}
    }
}

impl<K: 'static, H: Handler<K>> Handler<K> for Arc<H> {
    fn on_add(&self, object: Obj<K>, is_initial: bool) -> impl Future<Output = ()> + Send {
        (**self).on_add(object, is_initial)
    }

    fn on_update(&self, old: Obj<K>, new: Obj<K>) -> impl Future<Output = ()> + Send {
        (**self).on_update(old, new)
    }

    fn on_delete(&self, deleted: Deleted<K>) -> impl Future<Output = ()> + Send {
        (**self).on_delete(deleted)
    }
}

type OnAdd<K> = Box<dyn Fn(Obj<K>, bool) + Send + Sync>;
type OnUpdate<K> = Box<dyn Fn(Obj<K>, Obj<K>) + Send + Sync>;
type OnDelete<K> = Box<dyn Fn(Deleted<K>) + Send + Sync>;

/// A handler made of functions; what is not given does nothing.
///
/// ```
/// # use windlass_cache::{HandlerFns, Obj};
/// let handler = HandlerFns::new()
///     .on_add(|pod: Obj, _is_initial| println!("+ {}", pod.key()))
///     .on_delete(|deleted| println!("- {}", deleted.key()));
/// ```
pub struct HandlerFns<K> {
    on_add: Option<OnAdd<K>>,
    on_update: Option<OnUpdate<K>>,
    on_delete: Option<OnDelete<K>>,
}

impl<K> Default for HandlerFns<K> {
    fn default() -> Self {
        Self {
            on_add: None,
            on_update: None,
            on_delete: None,
        }
    }
}

impl<K> HandlerFns<K> {
    /// A handler that does nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls a function for objects that are there.
    #[must_use]
    pub fn on_add(mut self, function: impl Fn(Obj<K>, bool) + Send + Sync + 'static) -> Self {
        self.on_add = Some(Box::new(function));
        self
    }

    /// Calls a function with the old and the new state of objects that change.
    #[must_use]
    pub fn on_update(mut self, function: impl Fn(Obj<K>, Obj<K>) + Send + Sync + 'static) -> Self {
        self.on_update = Some(Box::new(function));
        self
    }

    /// Calls a function for objects that are gone.
    #[must_use]
    pub fn on_delete(mut self, function: impl Fn(Deleted<K>) + Send + Sync + 'static) -> Self {
        self.on_delete = Some(Box::new(function));
        self
    }
}

impl<K: 'static> Handler<K> for HandlerFns<K> {
    async fn on_add(&self, object: Obj<K>, is_initial: bool) {
        if let Some(function) = &self.on_add {
            function(object, is_initial);
        }
    }

    async fn on_update(&self, old: Obj<K>, new: Obj<K>) {
        if let Some(function) = &self.on_update {
            function(old, new);
        }
    }

    async fn on_delete(&self, deleted: Deleted<K>) {
        if let Some(function) = &self.on_delete {
            function(deleted);
        }
    }
}

impl<K> std::fmt::Debug for HandlerFns<K> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HandlerFns(..)")
    }
}

/// Calls one function with every object that is added, changed or deleted, in whichever state it
/// is known. This is what puts keys into a queue.
pub fn on_any<K: 'static>(
    function: impl Fn(Obj<K>) + Send + Sync + Clone + 'static,
) -> HandlerFns<K> {
    let (on_add, on_update) = (function.clone(), function.clone());
    HandlerFns::new()
        .on_add(move |object, _| on_add(object))
        .on_update(move |_, new| on_update(new))
        .on_delete(move |deleted| function(deleted.object().clone()))
}

/// Tells a handler only of objects that pass a filter.
///
/// An object that begins to pass is added and one that ceases to is deleted, as the handler sees
/// it.
#[derive(Debug)]
pub struct Filtered<K, F, H> {
    filter: F,
    handler: H,
    kind: PhantomData<fn(K)>,
}

impl<K, F: Fn(&Obj<K>) -> bool, H> Filtered<K, F, H> {
    /// A handler behind a filter.
    #[must_use]
    pub fn new(filter: F, handler: H) -> Self {
        Self {
            filter,
            handler,
            kind: PhantomData,
        }
    }
}

impl<K: 'static, F, H> Handler<K> for Filtered<K, F, H>
where
    F: Fn(&Obj<K>) -> bool + Send + Sync + 'static,
    H: Handler<K>,
{
    async fn on_add(&self, object: Obj<K>, is_initial: bool) {
        if (self.filter)(&object) {
            self.handler.on_add(object, is_initial).await;
        }
    }

    async fn on_update(&self, old: Obj<K>, new: Obj<K>) {
        match ((self.filter)(&old), (self.filter)(&new)) {
            (true, true) => self.handler.on_update(old, new).await,
            (false, true) => self.handler.on_add(new, false).await,
            (true, false) => self.handler.on_delete(Deleted::Observed(old)).await,
            (false, false) => {}
        }
    }

    async fn on_delete(&self, deleted: Deleted<K>) {
        if (self.filter)(deleted.object()) {
            self.handler.on_delete(deleted).await;
        }
    }
}
