//! What a control plane should be like.

use std::time::Duration;

/// How long all servers together may take to become ready. A start takes seconds; the rest is for
/// machines on which many tests start at once.
const START_DEADLINE: Duration = Duration::from_secs(120);

/// What a control plane should be like. The default is etcd and kube-apiserver alone, with a store
/// that need not survive a power cut.
#[derive(Debug, Clone)]
pub struct Options {
    pub(crate) is_durable: bool,
    pub(crate) controllers: Vec<String>,
    pub(crate) apiserver_flags: Vec<String>,
    pub(crate) controller_manager_flags: Vec<String>,
    pub(crate) deadline: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            is_durable: false,
            controllers: Vec::new(),
            apiserver_flags: Vec::new(),
            controller_manager_flags: Vec::new(),
            deadline: START_DEADLINE,
        }
    }
}

impl Options {
    /// Makes etcd sync each write to disk, as a production store does. Tests need no such store,
    /// but a measurement without it flatters the server.
    #[must_use]
    pub fn durable(mut self) -> Self {
        self.is_durable = true;
        self
    }

    /// Runs kube-controller-manager with these controllers, in the words of its `--controllers`
    /// flag: `replicaset-controller`, `*`, `-job-controller`.
    ///
    /// Without `serviceaccount-controller` among them no namespace gets its `default` service
    /// account, so the admission plugin that demands one of each pod is then switched off.
    #[must_use]
    pub fn controllers<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.controllers = names.into_iter().map(Into::into).collect();
        self
    }

    /// Adds a flag of kube-apiserver, such as `--feature-gates=WatchList=false`. It comes after
    /// the flags that are set here and so wins over them.
    #[must_use]
    pub fn apiserver_flag(mut self, flag: impl Into<String>) -> Self {
        self.apiserver_flags.push(flag.into());
        self
    }

    /// Adds a flag of kube-controller-manager, such as `--kube-api-qps=1000`.
    #[must_use]
    pub fn controller_manager_flag(mut self, flag: impl Into<String>) -> Self {
        self.controller_manager_flags.push(flag.into());
        self
    }

    /// Sets how long all servers together may take to become ready.
    #[must_use]
    pub fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    pub(crate) fn has_controller_manager(&self) -> bool {
        !self.controllers.is_empty()
    }

    pub(crate) fn has_service_accounts(&self) -> bool {
        let names = |name: &str| self.controllers.iter().any(|listed| listed == name);
        (names("*") || names("serviceaccount-controller")) && !names("-serviceaccount-controller")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_accounts_follow_the_list_of_controllers() {
        let table: [(&[&str], bool); 5] = [
            (&[], false),
            (&["replicaset-controller"], false),
            (&["*"], true),
            (&["*", "-serviceaccount-controller"], false),
            (&["job-controller", "serviceaccount-controller"], true),
        ];
        for (controllers, expected) in table {
            let options = Options::default().controllers(controllers.iter().copied());
            assert_eq!(options.has_service_accounts(), expected, "{controllers:?}");
        }
    }
}
