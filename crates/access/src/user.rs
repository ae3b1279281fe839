//! Users: who asks.

/// Who asks. In process, a caller says so by putting this into the extensions of its request;
/// what comes over a socket cannot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name that roles are bound to.
    pub name: String,
    /// A name that is never given twice, if there is one.
    pub uid: String,
    /// The groups that roles are bound to.
    pub groups: Vec<String>,
    /// Further attributes.
    pub extra: Vec<(String, Vec<String>)>,
}

/// Members may do everything.
pub const MASTERS: &str = "system:masters";
pub(crate) const AUTHENTICATED: &str = "system:authenticated";
pub(crate) const UNAUTHENTICATED: &str = "system:unauthenticated";

impl User {
    /// A user that is known to be who they say.
    #[must_use]
    pub fn new(name: &str, groups: &[&str]) -> Self {
        let mut groups: Vec<String> = groups.iter().map(|&group| group.to_owned()).collect();
        groups.push(AUTHENTICATED.to_owned());
        Self {
            name: name.to_owned(),
            groups,
            ..Self::default()
        }
    }

    /// The administrator, who may do everything.
    #[must_use]
    pub fn admin() -> Self {
        Self::new("windlass-admin", &[MASTERS])
    }

    /// The server itself.
    #[must_use]
    pub fn server() -> Self {
        Self::new("system:apiserver", &[MASTERS])
    }

    /// A service account.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let group = format!("system:serviceaccounts:{namespace}");
        Self::new(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &["system:serviceaccounts", &group],
        )
    }

    /// Somebody unknown.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: "system:anonymous".to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// The value of an extra that has exactly one.
    pub(crate) fn single_extra(&self, key: &str) -> Option<&str> {
        let values = self.extra.iter().find(|(known, _)| known == key);
        match values.map(|(_, values)| values.as_slice()) {
            Some([value]) => Some(value),
            _ => None,
        }
    }

    /// Returns true if the user is a member of a group.
    #[must_use]
    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|known| known == group)
    }
}
