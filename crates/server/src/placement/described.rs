//! The description of a cluster as files, for the process that answers a question about it.

use std::path::Path;

use ambient::{Purpose, TemporaryDirectory};
use api::v1::AskedCluster;
use axum::http::StatusCode;
use tokio::io::AsyncWriteExt as _;

use crate::error::ApiError;

/// Name of the file with a cluster in text format.
const TEXT: &str = "cluster.data";

/// A temporary directory with the description of a cluster. It is removed when this value is dropped.
pub(super) struct Described(TemporaryDirectory);

impl Described {
    pub(super) async fn new(cluster: &AskedCluster) -> Result<Self, ApiError> {
        let failed = |error: std::io::Error| {
            tracing::error!(%error, "a cluster cannot be written down");
            ApiError::new(StatusCode::SERVICE_UNAVAILABLE, "The cluster cannot be written down")
        };
        let directory = TemporaryDirectory::new(Purpose::Cluster).map_err(failed)?;
        let write = async |name: &str, text: &str| {
            let mut options = tokio::fs::OpenOptions::new();
            let file =
                options.write(true).create_new(true).mode(0o600).open(directory.path().join(name)).await;
            let mut file = file.map_err(failed)?;
            file.write_all(text.as_bytes()).await.map_err(failed)?;
            file.flush().await.map_err(failed)
        };
        match cluster {
            AskedCluster::Named(_) | AskedCluster::Fleet => {}
            AskedCluster::Text(text) => write(TEXT, text).await?,
            AskedCluster::Rapi(documents) => {
                for (name, text) in documents {
                    write(name, text).await?;
                }
            }
        }
        Ok(Self(directory))
    }

    /// The command-line option that refers to the description.
    pub(super) fn source(&self, cluster: &AskedCluster) -> String {
        match cluster {
            AskedCluster::Rapi(_) => format!("--master=file://{}", self.path().display()),
            // The fleet is described in the text format, too.
            _ => format!("--text-data={}", self.path().join(TEXT).display()),
        }
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[tokio::test]
    async fn a_description_can_be_read_by_the_service_only() {
        let described = Described::new(&AskedCluster::Text("g|u|preferred||\n".to_owned())).await;
        let Ok(described) = described else { panic!("it is written down") };
        let mode = |path: &Path| std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777;
        assert_eq!(mode(described.path()), 0o700);
        assert_eq!(mode(&described.path().join(TEXT)), 0o600);
        let text = std::fs::read_to_string(described.path().join(TEXT)).expect("it is ours");
        assert_eq!(text, "g|u|preferred||\n");
    }
}
