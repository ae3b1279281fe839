//! Lists in pages.

use super::DynamicApi;
use crate::{Error, List, ListOptions};

/// Page size where the options name none, as in client-go.
const PAGE_SIZE: u32 = 500;

/// Reads all pages of a list.
///
/// The list has the resource version of its first page. A server drops the state that later pages
/// continue from after some minutes; then the whole list is read again in one piece.
pub(crate) async fn list_all(api: &DynamicApi, options: &ListOptions) -> Result<List, Error> {
    let mut page = options.clone();
    if page.limit == 0 {
        page.limit = PAGE_SIZE;
    }
    let mut all: Option<List> = None;
    loop {
        let next = match api.list(&page).await {
            Err(error) if error.is_gone() && !page.continue_token.is_empty() => {
                let token = String::new();
                let whole = ListOptions {
                    limit: 0,
                    continue_token: token,
                    ..options.clone()
                };
                return api.list(&whole).await;
            }
            next => next?,
        };
        next.head
            .continue_token()
            .clone_into(&mut page.continue_token);
        // A server refuses both together with a token, which names the state already.
        page.resource_version.clear();
        page.version_match = None;
        let all = match &mut all {
            None => all.insert(next),
            Some(all) => {
                all.items.extend(next.items);
                all.undecodable.extend(next.undecodable);
                all
            }
        };
        if page.continue_token.is_empty() {
            let mut whole = std::mem::take(all);
            whole.head.forget_pages();
            return Ok(whole);
        }
    }
}
