//! Pages that the rest of the process adds to the server, such as what its controllers have done.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use http::{Response, StatusCode};
use parking_lot::RwLock;

use crate::body::Body;
use crate::query::Query;
use crate::respond;

/// Makes the text of a page from the parameters of a request, in the order given.
type Page = Arc<dyn Fn(&[(String, String)]) -> String + Send + Sync>;

/// Pages by their path.
#[derive(Default)]
pub(crate) struct Pages(RwLock<BTreeMap<String, Page>>);

impl Pages {
    pub(crate) fn add(&self, path: &str, page: Page) {
        self.0.write().insert(path.to_owned(), page);
    }

    pub(crate) fn page(&self, path: &str, query: &Query) -> Option<Response<Body>> {
        let page = self.0.read().get(path).cloned()?;
        let text = page(query.parameters());
        Some(respond::text(StatusCode::OK, text))
    }
}

impl fmt::Debug for Pages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.read().keys()).finish()
    }
}
