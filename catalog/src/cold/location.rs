//! Where the cold tier lives: the store's directory or a bucket.

use std::path::{Path as FilePath, PathBuf};
use std::sync::Arc;

use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::ObjectStore;
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::local::LocalFileSystem;
use object_store::path::Path;
use url::Url;

use crate::error::{Result, StoreError};
use crate::spec::TableSpec;
use crate::store::options::{ColdLocation, S3Location};

/// Object store of the cold tier and the place of tables in it.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    store: Arc<dyn ObjectStore>,
    /// Address of `store`'s root.
    root: Url,
    /// Place of the tables under the root.
    prefix: Path,
    /// Folder of the tables when they are files of this machine.
    local: Option<PathBuf>,
}

impl Location {
    pub(crate) fn open(tables: &FilePath, cold: &ColdLocation) -> Result<Self> {
        match cold {
            ColdLocation::Local => Self::local(tables),
            ColdLocation::S3(s3) => Self::s3(s3),
        }
    }

    fn local(tables: &FilePath) -> Result<Self> {
        let tables = std::path::absolute(tables).map_err(StoreError::io(tables))?;
        let wrong = |reason: String| StoreError::Setting {
            setting: tables.display().to_string(),
            reason,
        };
        let prefix = Path::from_absolute_path(&tables).map_err(|e| wrong(e.to_string()))?;
        let root = Url::parse("file:///").map_err(|e| wrong(e.to_string()))?;
        Ok(Self {
            store: Arc::new(LocalFileSystem::new()),
            root,
            prefix,
            local: Some(tables.clone()),
        })
    }

    fn s3(s3: &S3Location) -> Result<Self> {
        let wrong = |reason: String| StoreError::Setting {
            setting: format!("cold location {}", s3.url),
            reason,
        };
        let url = Url::parse(&s3.url).map_err(|e| wrong(e.to_string()))?;
        let (Some(bucket), "s3") = (url.host_str(), url.scheme()) else {
            return Err(wrong("expected s3://bucket/prefix".into()));
        };
        let secret =
            |name: &str| std::env::var(name).map_err(|_| wrong(format!("environment variable {name} is not set")));
        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(&s3.region)
            .with_allow_http(s3.allow_http)
            .with_access_key_id(secret(&s3.access_key_env)?)
            .with_secret_access_key(secret(&s3.secret_key_env)?)
            // Two writers of one log entry must not both win.
            .with_conditional_put(S3ConditionalPut::ETagMatch);
        if let Ok(token) = std::env::var(&s3.session_token_env)
            && !token.is_empty()
        {
            builder = builder.with_token(token);
        }
        if let Some(endpoint) = &s3.endpoint {
            builder = builder.with_endpoint(endpoint).with_virtual_hosted_style_request(false);
        }
        for (name, value) in &s3.options {
            let key: AmazonS3ConfigKey = name.parse().map_err(|e: object_store::Error| wrong(e.to_string()))?;
            builder = builder.with_config(key, value);
        }
        let store = builder.build().map_err(|e| wrong(e.to_string()))?;
        let root = Url::parse(&format!("s3://{bucket}/")).map_err(|e| wrong(e.to_string()))?;
        let prefix = Path::from_url_path(url.path()).map_err(|e| wrong(e.to_string()))?;
        Ok(Self {
            store: Arc::new(store),
            root,
            prefix,
            local: None,
        })
    }

    /// Object store that holds the files.
    pub(crate) fn store(&self) -> &Arc<dyn ObjectStore> {
        &self.store
    }

    /// Address of the object store for the query engine.
    pub(crate) fn root(&self) -> &Url {
        &self.root
    }

    /// Address of the object store for file scans.
    pub(crate) fn object_store_url(&self) -> Result<ObjectStoreUrl> {
        ObjectStoreUrl::parse(self.root.as_str()).map_err(|e| StoreError::Setting {
            setting: self.root.to_string(),
            reason: e.to_string(),
        })
    }

    /// Place of a table in the object store.
    pub(crate) fn table(&self, spec: &TableSpec) -> Path {
        self.prefix.clone().join(spec.schema.as_str()).join(spec.table.as_str())
    }

    /// Place of one file of a table in the object store.
    pub(crate) fn file(&self, spec: &TableSpec, path: &str) -> Path {
        self.table(spec).join(path)
    }

    /// Address of a table.
    pub(crate) fn table_url(&self, spec: &TableSpec) -> Result<Url> {
        let place = format!("{}{}/", self.root, self.table(spec));
        Url::parse(&place).map_err(|e| StoreError::Setting {
            setting: place,
            reason: e.to_string(),
        })
    }

    /// Folder of a table when it is on this machine.
    pub(crate) fn folder(&self, spec: &TableSpec) -> Option<PathBuf> {
        Some(self.local.as_ref()?.join(&spec.schema).join(&spec.table))
    }
}
