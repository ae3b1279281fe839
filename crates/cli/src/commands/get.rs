//! `windlass get`.

use anyhow::bail;
use clap::Args;
use windlass_client::{ListOptions, WatchError, WatchEvent, WatchOptions};
use windlass_core::{Doc, doc};

use super::connect::{Connection, Session};
use super::output::{self, Output, print};
use super::table::Table;
use super::target::{Target, targets, title};

/// How many objects are asked for at once.
const PAGE: u32 = 500;

/// Options of `get`.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// What to show: TYPE, TYPE NAME..., TYPE/NAME..., or several types as TYPE,TYPE.
    #[arg(required = true, value_name = "TYPE[/NAME]")]
    words: Vec<String>,
    /// Objects of all namespaces.
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only objects with these labels.
    #[arg(short = 'l', long, value_name = "LABELS", default_value = "")]
    selector: String,
    /// Only objects with these fields.
    #[arg(long, value_name = "FIELDS", default_value = "")]
    field_selector: String,
    /// The form.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,
    /// Leave out the headings.
    #[arg(long)]
    no_headers: bool,
    /// Objects that do not exist are no error.
    #[arg(long)]
    ignore_not_found: bool,
    /// Show what changes afterwards, too.
    #[arg(short, long)]
    watch: bool,
    #[command(flatten)]
    connection: Connection,
}

impl Arguments {
    /// Runs the command.
    pub(crate) async fn run(&self) -> anyhow::Result<()> {
        let session = self.connection.open().await?;
        let targets = targets(&session, &self.words).await?;
        if self.watch {
            return self.follow(&session, &targets).await;
        }
        if self.output.is_whole() {
            return self.whole(&session, &targets).await;
        }
        let is_mixed = targets.len() > 1;
        let mut shown = 0;
        for target in &targets {
            let mut table = Table::default();
            for rows in self.rows(&session, target).await? {
                self.take(&mut table, &rows, target, is_mixed);
            }
            if table.is_empty() {
                continue;
            }
            if shown > 0 && self.output != Output::Name {
                print("\n");
            }
            shown += 1;
            print(&self.written(&mut table));
        }
        if shown == 0 && !self.ignore_not_found {
            eprintln!("{}", self.nothing(&session));
        }
        Ok(())
    }

    fn nothing(&self, session: &Session) -> String {
        match self.all_namespaces {
            true => "No resources found".to_owned(),
            false => format!("No resources found in {} namespace.", session.namespace),
        }
    }

    fn list_options(&self) -> ListOptions {
        ListOptions {
            label_selector: self.selector.clone(),
            field_selector: self.field_selector.clone(),
            ..ListOptions::default()
        }
    }

    /// The tables of a target: one per page of a list, one per object that is named.
    async fn rows(&self, session: &Session, target: &Target) -> anyhow::Result<Vec<Doc>> {
        let api = session.api(&target.resource, self.all_namespaces);
        let mut tables = Vec::new();
        for name in &target.names {
            match api.get_table(name).await {
                Err(error) if error.is_not_found() && self.ignore_not_found => {}
                table => tables.push(table.map_err(|error| session.explain(error))?),
            }
        }
        if target.is_named() {
            return Ok(tables);
        }
        let mut options = ListOptions {
            limit: PAGE,
            ..self.list_options()
        };
        loop {
            let table = api.list_table(&options).await;
            let table = table.map_err(|error| session.explain(error))?;
            options.continue_token = table.str_at("/metadata/continue").to_owned();
            tables.push(table);
            if options.continue_token.is_empty() {
                return Ok(tables);
            }
        }
    }

    fn take(&self, table: &mut Table, rows: &Doc, target: &Target, is_mixed: bool) {
        let with_namespace = self.all_namespaces && target.resource.is_namespaced;
        let by_title = is_mixed || self.output == Output::Name;
        table.take(
            rows,
            self.output == Output::Wide,
            with_namespace,
            |name| match by_title {
                true => title(&target.resource, name),
                false => name.to_owned(),
            },
        );
    }

    fn written(&self, table: &mut Table) -> String {
        match self.output {
            Output::Name => table
                .write_rows()
                .lines()
                .filter_map(|line| line.split_whitespace().find(|word| word.contains('/')))
                .fold(String::new(), |text, name| text + name + "\n"),
            _ if self.no_headers => table.write_rows(),
            _ => table.write(),
        }
    }

    async fn whole(&self, session: &Session, targets: &[Target]) -> anyhow::Result<()> {
        let mut objects = Vec::new();
        for target in targets {
            let api = session.api(&target.resource, self.all_namespaces);
            for name in &target.names {
                match api.get(name).await {
                    Err(error) if error.is_not_found() && self.ignore_not_found => {}
                    object => objects.push(object.map_err(|error| session.explain(error))?),
                }
            }
            if !target.is_named() {
                let list = api.list_all(&self.list_options()).await;
                objects.extend(list.map_err(|error| session.explain(error))?.items);
            }
        }
        let is_list = targets.len() > 1 || !targets.iter().all(|target| target.names.len() == 1);
        print(&output::whole(&objects, is_list, self.output)?);
        Ok(())
    }

    /// Shows what is there and then every change, until interrupted.
    async fn follow(&self, session: &Session, targets: &[Target]) -> anyhow::Result<()> {
        let [target] = targets else {
            bail!("only one type can be watched at a time");
        };
        if target.names.len() > 1 {
            bail!("only one object, or all of a type, can be watched at a time");
        }
        let named = target.names.first();
        let mut options = self.list_options();
        if let Some(name) = named {
            options.field_selector = format!("metadata.name={name}");
        }
        let api = session.api(&target.resource, self.all_namespaces);
        let first = api.list_table(&options).await;
        let first = first.map_err(|error| session.explain(error))?;
        let mut version = first.str_at("/metadata/resourceVersion").to_owned();
        let mut table = Table::default();
        self.show(&mut table, &first, target)?;
        loop {
            let options = WatchOptions {
                label_selector: options.label_selector.clone(),
                field_selector: options.field_selector.clone(),
                resource_version: version.clone(),
                bookmarks: true,
                ..WatchOptions::default()
            };
            let watch = api.watch_table(&options).await;
            let mut watch = watch.map_err(|error| session.explain(error))?;
            while let Some(event) = watch.next().await {
                let rows = match event {
                    Ok(WatchEvent::Added(rows) | WatchEvent::Modified(rows)) => rows,
                    Ok(WatchEvent::Deleted(rows)) => rows,
                    Ok(WatchEvent::Bookmark(mark)) => {
                        version = newer(version, &mark);
                        continue;
                    }
                    Err(WatchError::Status(status)) => {
                        bail!("Error from server ({}): {}", status.reason, status.message)
                    }
                    Err(error) => bail!("the watch has ended: {error}"),
                };
                version = newer(version, &rows);
                self.show(&mut table, &rows, target)?;
            }
        }
    }

    fn show(&self, table: &mut Table, rows: &Doc, target: &Target) -> anyhow::Result<()> {
        if self.output.is_whole() {
            for row in rows.at("/rows").items() {
                let object = row.at("/object");
                let object = match object.str_at("/kind") {
                    // The server sends only the metadata beside the cells.
                    "PartialObjectMetadata" => doc!({ "metadata": object.at("/metadata").clone() }),
                    _ => object.clone(),
                };
                print(&output::whole(&[object], false, self.output)?);
            }
            return Ok(());
        }
        self.take(table, rows, target, false);
        if !table.is_empty() {
            print(&self.written(table));
        }
        Ok(())
    }
}

/// The revision after an event, from which a watch that the server ends goes on.
fn newer(version: String, event: &Doc) -> String {
    let found = [
        "/metadata/resourceVersion",
        "/rows/0/object/metadata/resourceVersion",
    ]
    .into_iter()
    .map(|path| event.str_at(path))
    .find(|found| !found.is_empty());
    found.map_or(version, str::to_owned)
}
