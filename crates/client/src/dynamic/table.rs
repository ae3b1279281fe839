//! Objects as rows of a table, in the columns that the server chooses for people.

use windlass_core::Doc;

use super::DynamicApi;
use crate::{Error, ListOptions, WatchOptions, WatchStream};

/// A server that knows no table of a kind answers with the objects themselves.
const TABLE: &str = "application/json;as=Table;g=meta.k8s.io;v=v1,application/json";

impl DynamicApi {
    /// One object as a table of one row.
    ///
    /// # Errors
    /// When there is no such object, or no answer.
    pub async fn get_table(&self, name: &str) -> Result<Doc, Error> {
        let request = self.rest.get(self.path().object(name)?);
        request.accept(TABLE).into_doc().await
    }

    /// One page of objects as a table.
    ///
    /// # Errors
    /// When the list does not come completely.
    pub async fn list_table(&self, options: &ListOptions) -> Result<Doc, Error> {
        let request = self.rest.get(self.path().collection()?);
        let request = request.params(options.params());
        request.accept(TABLE).into_doc().await
    }

    /// Follows the changes of objects. Each event carries a table of one row, of which only the
    /// first names its columns.
    ///
    /// # Errors
    /// When the server does not begin to answer.
    pub async fn watch_table(&self, options: &WatchOptions) -> Result<WatchStream, Error> {
        let namespace = self.namespace.as_deref();
        let watch = self
            .rest
            .watch_as(&self.resource, namespace, options, Some(TABLE));
        watch.await
    }
}
