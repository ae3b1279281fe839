//! `windlass describe`: an object with its events, in words.

use std::fmt::Write as _;

use clap::Args;
use windlass_client::ListOptions;
use windlass_core::Doc;

use super::connect::{Connection, Session};
use super::events;
use super::output::print;
use super::table::printable;
use super::target::{Target, targets};

/// The column in which values start.
const VALUE_COLUMN: usize = 14;

/// Annotations that only programs read.
const HIDDEN_ANNOTATIONS: [&str; 1] = ["kubectl.kubernetes.io/last-applied-configuration"];

/// Options of `describe`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What to describe: TYPE, TYPE NAME..., or TYPE/NAME...
    #[arg(required = true, value_name = "TYPE[/NAME]")]
    words: Vec<String>,
    /// Only objects with these labels.
    #[arg(short = 'l', long, value_name = "LABELS", default_value = "")]
    selector: String,
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let session = self.connection.open().await?;
        let mut is_first = true;
        for target in targets(&session, &self.words).await? {
            for object in self.objects(&session, &target).await? {
                if !is_first {
                    print("\n\n");
                }
                is_first = false;
                let mut text = described(&object);
                text.push_str(&event_lines(&session, &object).await?);
                print(&text);
            }
        }
        Ok(())
    }

    async fn objects(&self, session: &Session, target: &Target) -> anyhow::Result<Vec<Doc>> {
        let api = session.api(&target.resource, false);
        let mut objects = Vec::new();
        for name in &target.names {
            let object = api.get(name).await;
            objects.push(object.map_err(|error| session.explain(error))?);
        }
        if !target.is_named() {
            let options = ListOptions {
                label_selector: self.selector.clone(),
                ..ListOptions::default()
            };
            let list = api.list_all(&options).await;
            objects = list.map_err(|error| session.explain(error))?.items;
        }
        Ok(objects)
    }
}

async fn event_lines(session: &Session, object: &Doc) -> anyhow::Result<String> {
    let selector = format!("involvedObject.uid={}", object.meta().uid_str());
    let events = events::events(session, &selector, true).await?;
    Ok(match events.is_empty() {
        true => format!("{:<VALUE_COLUMN$}<none>\n", "Events:"),
        false => format!("Events:\n{}", indented(&events::written(&events, false))),
    })
}

fn indented(text: &str) -> String {
    let lines = text.lines();
    lines.fold(String::new(), |text, line| text + "  " + line + "\n")
}

fn described(object: &Doc) -> String {
    let meta = object.meta();
    let mut text = String::new();
    value(&mut text, 0, "Name", meta.name());
    if !meta.namespace().is_empty() {
        value(&mut text, 0, "Namespace", meta.namespace());
    }
    let hidden = |key: &str| HIDDEN_ANNOTATIONS.contains(&key);
    pairs(&mut text, "Labels", meta.labels().iter());
    let annotations = meta.annotations();
    let annotations = annotations.iter().filter(|(key, _)| !hidden(key));
    pairs(&mut text, "Annotations", annotations);
    for (path, title) in [
        ("/apiVersion", "API Version"),
        ("/kind", "Kind"),
        ("/metadata/creationTimestamp", "Created"),
        ("/metadata/deletionTimestamp", "Deleted"),
    ] {
        let found = object.str_at(path);
        if !found.is_empty() {
            value(&mut text, 0, title, found);
        }
    }
    if let Some(owner) = meta.controller() {
        let owner = format!("{}/{}", owner.kind, owner.name);
        value(&mut text, 0, "Controlled By", &owner);
    }
    let is_secret = object.str_at("/kind") == "Secret";
    for (key, field) in object.as_object().into_iter().flat_map(|all| all.iter()) {
        match key.as_str() {
            "apiVersion" | "kind" | "metadata" => {}
            // The values are what must not be seen over a shoulder.
            "data" | "stringData" if is_secret => sizes(&mut text, field),
            key => field_lines(&mut text, 0, key, field),
        }
    }
    text
}

fn sizes(text: &mut String, data: &Doc) {
    text.push_str("Data:\n");
    for (key, field) in data.as_object().into_iter().flat_map(|all| all.iter()) {
        let encoded = field.as_str().unwrap_or_default();
        let padding = encoded.bytes().rev().take_while(|&b| b == b'=').count();
        let size = encoded.len() / 4 * 3 - padding.min(encoded.len() / 4 * 3);
        value(text, 2, key.as_str(), &format!("{size} bytes"));
    }
}

fn pairs<'a>(text: &mut String, title: &str, pairs: impl Iterator<Item = (&'a str, &'a str)>) {
    let mut title = format!("{title}:");
    let mut is_empty = true;
    for (key, found) in pairs {
        let _ = writeln!(text, "{title:<VALUE_COLUMN$}{key}={}", printable(found));
        title.clear();
        is_empty = false;
    }
    if is_empty {
        let _ = writeln!(text, "{title:<VALUE_COLUMN$}<none>");
    }
}

fn value(text: &mut String, indent: usize, title: &str, found: &str) {
    let title = format!("{:indent$}{title}:", "");
    let column = VALUE_COLUMN.max(title.chars().count() + 1);
    let _ = writeln!(text, "{title:<column$}{}", printable(found));
}

/// A field and what is below it, one line each.
fn field_lines(text: &mut String, indent: usize, key: &str, field: &Doc) {
    let title = titled(key);
    if field
        .as_object()
        .is_some_and(|all| all.iter().next().is_none())
    {
        return;
    }
    match (field.as_object(), field.as_array()) {
        (Some(object), _) => {
            let _ = writeln!(text, "{:indent$}{title}:", "");
            for (key, field) in object.iter() {
                field_lines(text, indent + 2, key.as_str(), field);
            }
        }
        (None, Some(_)) => {
            let _ = writeln!(text, "{:indent$}{title}:", "");
            for item in field.items() {
                item_lines(text, indent + 2, item);
            }
        }
        (None, None) => value(text, indent, &title, &scalar(field)),
    }
}

fn item_lines(text: &mut String, indent: usize, item: &Doc) {
    let Some(object) = item.as_object() else {
        let _ = writeln!(text, "{:indent$}{}", "", printable(&scalar(item)));
        return;
    };
    let mut lines = String::new();
    for (key, field) in object.iter() {
        field_lines(&mut lines, indent + 2, key.as_str(), field);
    }
    // The first line of an item carries its mark.
    let marked = lines.get(indent + 2..).unwrap_or_default();
    let _ = write!(text, "{:indent$}- {marked}", "");
}

fn scalar(value: &Doc) -> String {
    match value.as_str() {
        Some(text) => text.to_owned(),
        None => String::from_utf8_lossy(&value.to_json()).into_owned(),
    }
}

/// `minReadySeconds` as `Min Ready Seconds`. Keys with other signs in them are names, not fields.
fn titled(key: &str) -> String {
    if !key.chars().all(|c| c.is_ascii_alphanumeric()) {
        return key.to_owned();
    }
    let mut title = String::new();
    let mut was_lower = false;
    for c in key.chars() {
        if c.is_ascii_uppercase() && was_lower {
            title.push(' ');
        }
        was_lower = !c.is_ascii_uppercase();
        match title.is_empty() {
            true => title.extend(c.to_uppercase()),
            false => title.push(c),
        }
    }
    title
}

#[cfg(test)]
mod tests {
    use windlass_core::doc;

    use super::*;

    #[test]
    fn an_object_is_described_field_by_field() {
        let object = doc!({
            "apiVersion": "example.com/v1",
            "kind": "Foo",
            "metadata": {
                "name": "web", "namespace": "default",
                "labels": { "app": "web", "tier": "front" },
                "annotations": {
                    "kubectl.kubernetes.io/last-applied-configuration": "{}", "note": "n" },
            },
            "spec": { "minReadySeconds": 5, "containers": [{ "name": "a", "image": "b" }] },
            "status": {},
        });
        assert_eq!(
            described(&object),
            "Name:         web\n\
             Namespace:    default\n\
             Labels:       app=web\n              tier=front\n\
             Annotations:  note=n\n\
             API Version:  example.com/v1\n\
             Kind:         Foo\n\
             Spec:\n\
             \x20 Containers:\n\
             \x20   - Image:  b\n\
             \x20     Name:   a\n\
             \x20 Min Ready Seconds: 5\n"
        );
    }

    #[test]
    fn a_secret_shows_sizes_only() {
        let object = doc!({
            "kind": "Secret", "metadata": { "name": "s" }, "data": { "token": "aGVsbG8=" },
        });
        let text = described(&object);
        assert!(text.contains("token:      5 bytes"), "{text}");
        assert!(!text.contains("aGVsbG8"), "{text}");
    }
}
