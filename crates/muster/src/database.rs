//! Where a shared database is, as flags.

use anyhow::{Context, Result};
use clap::Args;
use muster_store::PostgresOptions;
use std::path::PathBuf;

/// A PostgreSQL database.
#[derive(Args)]
pub(crate) struct Database {
    /// The database: postgres://USER@HOST:PORT/DATABASE. `?sslmode=verify-full` verifies the
    /// server's certificate.
    #[arg(
        long,
        env = "MUSTER_POSTGRES",
        value_name = "URL",
        hide_env_values = true
    )]
    postgres: String,
    /// A file whose content is the password. It is read anew for every connection, so that the
    /// password may be rotated.
    #[arg(long, env = "MUSTER_POSTGRES_PASSWORD_FILE", value_name = "FILE")]
    postgres_password_file: Option<PathBuf>,
    /// How many connections this process opens at most.
    #[arg(long, env = "MUSTER_POSTGRES_CONNECTIONS", value_name = "COUNT", default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=1000))]
    postgres_connections: u32,
}

impl Database {
    pub(crate) fn options(&self) -> Result<PostgresOptions> {
        let mut options =
            PostgresOptions::from_url(&self.postgres).context("reading --postgres")?;
        options.password_file = self.postgres_password_file.clone();
        options.max_connections = self.postgres_connections;
        Ok(options)
    }
}
