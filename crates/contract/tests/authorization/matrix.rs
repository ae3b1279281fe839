//! Tables of requests and answers.
//!
//! In every text, `{ns}` stands for the namespace of the table, which no other table has. Users
//! and objects outside of namespaces are named after it.

use http::Method;
use windlass_contract::{Answer, Scope};
use windlass_core::{Doc, doc};

/// Objects that exist, then rows in their order.
#[derive(Debug, Default)]
pub(crate) struct Table {
    setup: Vec<(String, String)>,
    /// Reviews whose answer is yes before the first row.
    known: Vec<Doc>,
    rows: Vec<Row>,
}

/// One request and its answer.
#[derive(Debug)]
pub(crate) struct Row {
    name: String,
    who: String,
    request: String,
    headers: Vec<(String, Vec<u8>)>,
    body: String,
    code: u16,
    says: Vec<String>,
    values: Vec<(&'static str, Doc)>,
}

/// A row: who sends which request (`METHOD path`), and the code of the answer.
///
/// A sender is `admin`, `nobody` without credentials, `sa:NAME` with the token of a service
/// account of the namespace, `as:USER` for a user in full, or else the user `{ns}-NAME`; all but
/// the first three are impersonated by the administrator.
pub(crate) fn row(name: &str, who: &str, request: &str, code: u16) -> Row {
    Row {
        name: name.to_owned(),
        who: who.to_owned(),
        request: request.to_owned(),
        headers: Vec::new(),
        body: String::new(),
        code,
        says: Vec::new(),
        values: Vec::new(),
    }
}

impl Row {
    /// With a JSON body.
    pub(crate) fn body(mut self, body: impl Into<String>) -> Self {
        self.body = body.into();
        self
    }

    /// With one more header.
    pub(crate) fn header(mut self, name: &str, value: impl AsRef<[u8]>) -> Self {
        self.headers
            .push((name.to_owned(), value.as_ref().to_vec()));
        self
    }

    /// The message has this in it.
    pub(crate) fn says(mut self, text: &str) -> Self {
        self.says.push(text.to_owned());
        self
    }

    /// The answer has this value.
    pub(crate) fn has(mut self, pointer: &'static str, value: impl Into<Doc>) -> Self {
        self.values.push((pointer, value.into()));
        self
    }
}

impl Table {
    /// An object that is there before the first row.
    pub(crate) fn with(mut self, path: &str, object: &str) -> Self {
        self.setup.push((path.to_owned(), object.to_owned()));
        self
    }

    /// A role of the namespace and its binding to the user of the same name.
    pub(crate) fn user(self, name: &str, rules: &str) -> Self {
        let role = format!(r#"{{"metadata":{{"name":"{name}"}},"rules":{rules}}}"#);
        let binding = format!(
            r#"{{"metadata":{{"name":"{name}"}},"roleRef":{{"kind":"Role","name":"{name}"}},
                "subjects":[{{"kind":"User","name":"{{ns}}-{name}"}}]}}"#
        );
        self.with("roles", &role).with("rolebindings", &binding)
    }

    /// A role for the cluster and its binding to the user of the same name.
    pub(crate) fn cluster_user(self, name: &str, rules: &str) -> Self {
        let role = format!(r#"{{"metadata":{{"name":"{{ns}}-{name}"}},"rules":{rules}}}"#);
        let binding = format!(
            r#"{{"metadata":{{"name":"{{ns}}-{name}"}},
                "roleRef":{{"kind":"ClusterRole","name":"{{ns}}-{name}"}},
                "subjects":[{{"kind":"User","name":"{{ns}}-{name}"}}]}}"#
        );
        self.with("clusterroles", &role)
            .with("clusterrolebindings", &binding)
    }

    /// A service account of the namespace that has some rules for the cluster.
    pub(crate) fn account(self, name: &str, rules: &str) -> Self {
        let account = format!(r#"{{"metadata":{{"name":"{name}"}}}}"#);
        let role = format!(r#"{{"metadata":{{"name":"{{ns}}-{name}"}},"rules":{rules}}}"#);
        let binding = format!(
            r#"{{"metadata":{{"name":"{{ns}}-{name}"}},
                "roleRef":{{"kind":"ClusterRole","name":"{{ns}}-{name}"}},
                "subjects":[{{"kind":"ServiceAccount","name":"{name}","namespace":"{{ns}}"}}]}}"#
        );
        self.with("serviceaccounts", &account)
            .with("clusterroles", &role)
            .with("clusterrolebindings", &binding)
    }

    /// A right in the namespace that a user in a group has to have before the first row: the real
    /// server learns of pods a moment after they are written.
    pub(crate) fn known(
        mut self,
        (user, group): (&str, &str),
        verb: &str,
        resource: &str,
        name: &str,
    ) -> Self {
        self.known.push(
            doc!({ "spec": { "user": user, "groups": [group], "resourceAttributes": {
            "namespace": "{ns}", "verb": verb, "resource": resource, "name": name
        } } }),
        );
        self
    }

    /// Some rows.
    pub(crate) fn rows(mut self, rows: impl IntoIterator<Item = Row>) -> Self {
        self.rows.extend(rows);
        self
    }

    /// The names of the rows.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().map(|row| row.name.as_str())
    }

    /// Sends every request and reports all answers that differ.
    pub(crate) async fn run(&self, t: &Scope) {
        for (path, object) in &self.setup {
            t.made(&fill(t, path), &parse(t, object)).await;
        }
        until_roles_are_known(t).await;
        for review in &self.known {
            until_allowed(t, &parse(t, review.to_json())).await;
        }
        let mut wrong = Vec::new();
        for row in &self.rows {
            let answer = row.send(t).await;
            if let Some(why) = row.judge(t, &answer) {
                wrong.push(format!("{}: {why}\n    {}", row.name, answer.text()));
            }
        }
        assert!(
            wrong.is_empty(),
            "{} of {} rows do not hold:\n{}",
            wrong.len(),
            self.rows.len(),
            wrong.join("\n")
        );
    }
}

impl Row {
    async fn send(&self, t: &Scope) -> Answer {
        let (method, path) = self.request.split_once(' ').expect("a method and a path");
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut scope = sender(t, &self.who).await;
        for (name, value) in &self.headers {
            let value = match std::str::from_utf8(value) {
                Ok(text) => fill(t, text).into_bytes(),
                Err(_) => value.clone(),
            };
            scope = scope.with_header_bytes(name, &value);
        }
        let request = scope.request(method.clone(), &fill(t, path));
        let request = match (method.as_str(), self.body.as_str()) {
            (_, "") => request,
            ("PATCH", body) => request.body("application/merge-patch+json", fill(t, body)),
            (_, body) => request.body("application/json", fill(t, body)),
        };
        scope.send(request).await
    }

    /// What is wrong with an answer.
    fn judge(&self, t: &Scope, answer: &Answer) -> Option<String> {
        if answer.code() != self.code {
            return Some(format!("{} expected, got {}", self.code, answer.code()));
        }
        if self.code < 400 && self.says.is_empty() && self.values.is_empty() {
            return None;
        }
        let is_json = answer
            .header("content-type")
            .starts_with("application/json");
        if !is_json && self.says.is_empty() && self.values.is_empty() {
            return None;
        }
        let found = answer.doc();
        let reason = match self.code {
            400 => "BadRequest",
            401 => "Unauthorized",
            403 => "Forbidden",
            404 => "NotFound",
            409 => "AlreadyExists",
            422 => "Invalid",
            _ => "",
        };
        if self.code >= 400 && found.str_at("/reason") != reason {
            return Some(format!("the reason is not {reason}"));
        }
        for text in &self.says {
            let text = fill(t, text);
            if !found.str_at("/message").contains(&text) {
                return Some(format!("the message has no {text:?}"));
            }
        }
        for (pointer, value) in &self.values {
            let value = parse(t, value.to_json());
            if *found.at(pointer) != value {
                return Some(format!("{pointer} is not {value}"));
            }
        }
        None
    }
}

/// The scope as a sender sees it.
async fn sender(t: &Scope, who: &str) -> Scope {
    match who.split_once(':') {
        _ if who == "admin" => t.clone(),
        _ if who == "nobody" => t.as_nobody(),
        Some(("sa", account)) => {
            let path = format!("serviceaccounts/{account}/token");
            let made = t.made(&path, &doc!({ "spec": {} })).await;
            t.with_token(made.str_at("/status/token"))
        }
        Some(("as", user)) => t.as_user(&fill(t, user)),
        _ => t.as_user(&t.unique(who)),
    }
}

fn fill(t: &Scope, text: &str) -> String {
    text.replace("{ns}", t.namespace())
}

fn parse(t: &Scope, text: impl AsRef<[u8]>) -> Doc {
    let text = String::from_utf8_lossy(text.as_ref()).into_owned();
    let text = fill(t, &text);
    Doc::parse(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// The real server learns of roles and bindings a moment after they are written, each resource in
/// its order: when it knows the last ones, it knows all.
async fn until_roles_are_known(t: &Scope) {
    let rules = r#"[{"verbs":["last"],"apiGroups":["last"],"resources":["last"]}]"#;
    let last = Table::default()
        .user("last", rules)
        .cluster_user("last-of-all", rules);
    for (path, object) in &last.setup {
        t.made(&fill(t, path), &parse(t, object)).await;
    }
    for (user, namespace) in [("last", t.namespace()), ("last-of-all", "")] {
        let review = doc!({ "spec": { "user": (t.unique(user)), "resourceAttributes": {
            "namespace": namespace, "verb": "last", "group": "last", "resource": "last"
        } } });
        until_allowed(t, &review).await;
    }
}

/// Waits until the answer to a review is yes.
async fn until_allowed(t: &Scope, review: &Doc) {
    for _ in 0..2000 {
        let answer = t.create("subjectaccessreviews", review).await.is(201);
        if *answer.at("/status/allowed") == true {
            return;
        }
        tokio::task::yield_now().await;
    }
    panic!("the server did not come to allow {review}");
}
