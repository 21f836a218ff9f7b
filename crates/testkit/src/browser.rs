//! A real browser: Chromium without a window, driven over WebDriver. It sees pages as people do: with
//! styles, scripts and a console, in light and in dark, wide and narrow.

use crate::http::plain_client;
use crate::process::{Directory, Process};
use crate::wait;
use anyhow::{Context, Result, bail, ensure};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// How long the driver, and then the browser, may take to be there.
const START: Duration = Duration::from_secs(90);

/// How to get what is missing.
const MISSING: &str = "chromedriver cannot be started; install it with `apt-get install chromium chromium-driver`, or run `cargo xtask test`";

/// Asking for the animations makes the browser compute styles, and so begin the transitions that are due.
const FINISH: &str = "
    for (const animation of document.getAnimations()) {
        if (animation.effect.getComputedTiming().endTime !== Infinity) animation.finish();
    }";

/// A browser with one window; it ends when it is told to, or dropped.
pub struct Browser {
    client: reqwest::Client,
    session: String,
    _driver: Process,
    _directory: Directory,
}

impl Browser {
    /// Starts a browser that knows nothing yet.
    pub async fn start() -> Result<Browser> {
        let directory = Directory::new("browser")?;
        let log = directory.join("chromedriver.log");
        let mut command = Command::new("chromedriver");
        command.args(["--port=0", "--allowed-ips=127.0.0.1"]);
        // What the browser keeps is gone with the test, whoever runs it.
        command.env("HOME", directory.path());
        let driver = Process::start("chromedriver", &mut command, &log).context(MISSING)?;
        let port = wait::until("the port of chromedriver", START, || {
            let log = std::fs::read_to_string(driver.log()).unwrap_or_default();
            Ok(port(&log))
        })?;
        let client = plain_client(None)?;
        let profile = format!("--user-data-dir={}", directory.join("profile").display());
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--hide-scrollbars",
            &profile,
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "browserName": "chrome",
            // The servers of tests have authorities that no browser knows.
            "acceptInsecureCerts": true,
            "goog:chromeOptions": {"args": arguments},
            "goog:loggingPrefs": {"browser": "ALL"},
        }}});
        let driver_at = format!("http://127.0.0.1:{port}/session");
        let begun = post(&client, &driver_at, &wanted).await;
        let begun = begun.with_context(|| format!("its log ends:\n{}", driver.log_tail()))?;
        let id = begun["sessionId"].as_str().context("a session")?;
        Ok(Browser {
            client,
            session: format!("{driver_at}/{id}"),
            _driver: driver,
            _directory: directory,
        })
    }

    /// Goes to an address, and waits until it is there.
    pub async fn open(&self, address: &str) -> Result<()> {
        self.post("url", &json!({ "url": address })).await?;
        Ok(())
    }

    /// Where it is.
    pub async fn address(&self) -> Result<String> {
        let address = self.run("return location.href").await?;
        Ok(address.as_str().unwrap_or_default().to_owned())
    }

    /// The text of the first element that a selector means, as it is shown.
    pub async fn text(&self, selector: &str) -> Result<String> {
        let script = format!("return document.querySelector({selector:?})?.innerText ?? ''");
        let text = self.run(&script).await?;
        Ok(text.as_str().unwrap_or_default().to_owned())
    }

    /// Types into the first element that a selector means, and sends the form it is in.
    pub async fn submit(&self, selector: &str, text: &str) -> Result<()> {
        let script = format!(
            "const field = document.querySelector({selector:?}); field.value = {text:?}; field.form.requestSubmit();"
        );
        self.run(&script).await?;
        Ok(())
    }

    /// Runs a script in the page, as a function that returns something.
    pub async fn run(&self, script: &str) -> Result<Value> {
        self.post("execute/sync", &json!({"script": script, "args": []}))
            .await
    }

    /// Waits until a script returns true.
    pub async fn wait(&self, what: &str, limit: Duration, script: &str) -> Result<()> {
        wait::until_async(what, limit, || async {
            let answer = self.run(script).await?;
            Ok((answer == Value::Bool(true)).then_some(()))
        })
        .await
    }

    /// What the console has said since it was last asked, from warnings on.
    pub async fn complaints(&self) -> Result<Vec<String>> {
        let entries = self.post("se/log", &json!({"type": "browser"})).await?;
        let entries = entries.as_array().cloned().unwrap_or_default();
        let bad = entries
            .iter()
            .filter(|entry| matches!(entry["level"].as_str(), Some("SEVERE" | "WARNING")));
        Ok(bad.map(|entry| entry["message"].to_string()).collect())
    }

    /// Makes the window so large, and says whether its user likes it dark.
    pub async fn show(&self, width: u32, height: u32, is_dark: bool) -> Result<()> {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.tell("Emulation.setDeviceMetricsOverride", &size)
            .await?;
        let scheme = if is_dark { "dark" } else { "light" };
        let media = json!({"features": [{"name": "prefers-color-scheme", "value": scheme}]});
        self.tell("Emulation.setEmulatedMedia", &media).await?;
        self.finish_transitions().await
    }

    /// Moves every transition and finite animation of the page to its end, so that what is read next does
    /// not depend on how much time has passed since the page changed.
    async fn finish_transitions(&self) -> Result<()> {
        self.run(FINISH).await?;
        Ok(())
    }

    /// Keeps a picture of the whole page.
    pub async fn picture(&self, file: &Path) -> Result<()> {
        let whole = json!({"format": "png", "captureBeyondViewport": false});
        let picture = self.tell("Page.captureScreenshot", &whole).await?;
        let picture = picture["data"].as_str().context("a picture")?;
        let picture = BASE64_STANDARD.decode(picture)?;
        if let Some(directory) = file.parent() {
            std::fs::create_dir_all(directory)?;
        }
        std::fs::write(file, picture).with_context(|| format!("keeping {}", file.display()))
    }

    /// Ends the browser.
    pub async fn end(self) -> Result<()> {
        self.client.delete(&self.session).send().await?;
        Ok(())
    }

    async fn tell(&self, command: &str, parameters: &Value) -> Result<Value> {
        let body = json!({"cmd": command, "params": parameters});
        self.post("goog/cdp/execute", &body).await
    }

    async fn post(&self, command: &str, body: &Value) -> Result<Value> {
        post(&self.client, &format!("{}/{command}", self.session), body).await
    }
}

/// The port that the driver says it has.
fn port(log: &str) -> Option<u16> {
    let (_, rest) = log.split_once("started successfully on port ")?;
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

async fn post(client: &reqwest::Client, address: &str, body: &Value) -> Result<Value> {
    let request = client
        .post(address)
        .header("content-type", "application/json")
        .body(body.to_string());
    let answer = request.send().await.context("asking chromedriver")?;
    let status = answer.status();
    let text = answer.bytes().await.context("hearing chromedriver")?;
    let answer: Value = serde_json::from_slice(&text).context("chromedriver speaks JSON")?;
    if !status.is_success() {
        bail!(
            "chromedriver answered {status}: {}",
            answer["value"]["message"]
        );
    }
    ensure!(answer.get("value").is_some(), "chromedriver said nothing");
    Ok(answer["value"].clone())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_read_from_what_the_driver_says() {
        let log = "Starting…\nChromeDriver was started successfully on port 41234.\n";
        assert_eq!(port(log), Some(41234));
        assert_eq!(port("Starting…"), None);
    }
}
