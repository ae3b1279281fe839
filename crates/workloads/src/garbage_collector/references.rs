//! Whether the owners of an object exist.

use windlass_core::Doc;

use super::{
    collector::{Collector, Failure},
    identity::{Deletion, Identity, Owner},
};

/// The owners of an object, as the server has them now.
#[derive(Debug, Default)]
pub(super) struct References {
    /// They exist.
    pub(super) solid: Vec<Owner>,
    /// They do not exist.
    pub(super) dangling: Vec<Owner>,
    /// They exist, and wait until their dependents are gone.
    pub(super) waiting: Vec<Owner>,
}

/// What is known of one owner.
enum State {
    Solid,
    Dangling,
    Waiting,
}

impl References {
    /// The UIDs of all owners that do not keep the object.
    pub(super) fn weak_uids(&self) -> Vec<&str> {
        let weak = self.dangling.iter().chain(&self.waiting);
        weak.map(|owner| &*owner.uid).collect()
    }
}

impl Collector {
    /// Looks up every owner of an object.
    pub(super) async fn classify(
        &self,
        item: &Identity,
        live: &Doc,
    ) -> Result<References, Failure> {
        let mut references = References::default();
        for owner in live.meta().owner_refs().map(Owner::from) {
            let list = match self.state_of(item, &owner).await? {
                State::Solid => &mut references.solid,
                State::Dangling => &mut references.dangling,
                State::Waiting => &mut references.waiting,
            };
            list.push(owner);
        }
        Ok(references)
    }

    async fn state_of(&self, item: &Identity, owner: &Owner) -> Result<State, Failure> {
        let namespaced = owner.identity(&item.namespace);
        let cluster = namespaced.in_namespace("");
        {
            let mut absent = self.absent.lock();
            if absent.contains(&cluster) || absent.contains(&namespaced) {
                return Ok(State::Dangling);
            }
        }
        let mapping = self.mapping(&owner.kind, &owner.api_version)?;
        if mapping.is_namespaced && !item.is_namespaced() {
            return Err(Failure::NamespacedOwner);
        }
        let identity = if mapping.is_namespaced {
            namespaced
        } else {
            cluster
        };
        let Some(live) = self.live(&identity).await? else {
            self.absent.lock().add(&identity);
            return Ok(State::Dangling);
        };
        let is_waiting = Deletion::of(live.meta()).is_foreground();
        Ok(if is_waiting {
            State::Waiting
        } else {
            State::Solid
        })
    }
}
