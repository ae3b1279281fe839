//! A list in pages.

use windlass_core::Doc;

use crate::source::{ListRequest, ListWatch, Page, Reason, SourceError, Undecodable};

/// A whole list.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Listed {
    pub(super) items: Vec<Doc>,
    pub(super) undecodable: Vec<Undecodable>,
    /// Of the first page: later pages are of the same state.
    pub(super) resource_version: String,
    /// True if there was more than one page.
    pub(super) is_paginated: bool,
}

impl Listed {
    fn append(&mut self, page: Page) {
        self.items.extend(page.items);
        self.undecodable.extend(page.undecodable);
    }
}

/// Reads all pages. If the state that they are of expires on the way, the list is read once more
/// in one piece.
pub(super) async fn list_all(
    source: &dyn ListWatch,
    first: ListRequest,
) -> Result<Listed, SourceError> {
    let mut page = checked(source.list(first.clone()).await?)?;
    let mut listed = Listed {
        resource_version: std::mem::take(&mut page.resource_version),
        is_paginated: !page.continue_token.is_empty(),
        ..Listed::default()
    };
    loop {
        // The server refuses a version next to a token, which holds one already.
        let token = std::mem::take(&mut page.continue_token);
        listed.append(page);
        if token.is_empty() {
            return Ok(listed);
        }
        let request = ListRequest {
            resource_version: String::new(),
            limit: first.limit,
            continue_token: token,
        };
        page = match source.list(request).await {
            Ok(page) => page,
            Err(error) if error.reason == Reason::Expired => return whole(source, first).await,
            Err(error) => return Err(error),
        };
    }
}

async fn whole(source: &dyn ListWatch, first: ListRequest) -> Result<Listed, SourceError> {
    let page = source.list(ListRequest { limit: 0, ..first }).await?;
    let mut listed = Listed {
        resource_version: page.resource_version.clone(),
        is_paginated: true,
        ..Listed::default()
    };
    listed.append(page);
    Ok(listed)
}

/// A table is made for people: its rows are not objects.
fn checked(page: Page) -> Result<Page, SourceError> {
    match &page.kind {
        Some(kind) if kind.group() == "meta.k8s.io" && kind.kind() == "Table" => Err(
            SourceError::new(Reason::Unsupported, format!("unsupported list gvk: {kind}")),
        ),
        _ => Ok(page),
    }
}
