//! `GenaiModel`: a model of genai's client.

use std::{collections::VecDeque, fmt, sync::Arc, time::Duration};

use futures::{
    FutureExt, StreamExt, future,
    stream::{self, BoxStream},
};
use genai::{
    Client, ModelSpec,
    adapter::AdapterKind,
    chat::{ChatOptions, ChatStream},
};
use serde_json::Value;
use threadfold::{
    Answer, ContextWindow, Model, Request, async_trait,
    message::{Delta, ModelError, ModelErrorKind},
    model::{self, Clock, std_clock},
    wire::{self, Adjustment},
};

use crate::{
    answer::Streamed,
    failure::error_from_genai,
    request::{Converted, to_genai},
    target::Target,
};

/// The host's function that receives the adjustments of a request.
type Observer = Arc<dyn Fn(&[Adjustment]) + Send + Sync>;

/// A model of genai's client.
///
/// Needs the tokio runtime, as genai does. [`ModelAgent`](threadfold::ModelAgent) makes an agent of
/// it. genai does not know the windows of models, so the window is that of
/// [`ContextWindow::for_model`] for the name of the model. It is unknown for names that are not in
/// that table, for local servers and for Copilot. If a resolver of the client maps the name to
/// another model, the window may be wrong: then set it on the agent.
///
/// ```
/// use std::sync::Arc;
/// use threadfold::{Agent, ContextWindow, ModelAgent, Session};
/// use threadfold_genai::GenaiModel;
///
/// let model = GenaiModel::new(genai::Client::new()?, "claude-opus-4-6");
/// let agent = ModelAgent::new(Arc::new(model));
/// assert_eq!(agent.context_window(), Some(ContextWindow::new(1_000_000)));
/// let session = Session::builder(agent.with_window(ContextWindow::new(200_000))).build()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct GenaiModel {
    client: Client,
    model: ModelSpec,
    options: ChatOptions,
    observer: Observer,
}

impl GenaiModel {
    /// Returns the model of this name, or of any other specification that genai accepts.
    ///
    /// Each call runs the resolvers of the client twice: once to find the adapter that determines
    /// the dialect, and once in genai.
    #[must_use]
    pub fn new(client: Client, model: impl Into<ModelSpec>) -> Self {
        let model = model.into();
        Self { client, model, options: ChatOptions::default(), observer: Arc::new(|_| {}) }
    }

    /// Returns the model with these options, such as the effort of its reasoning. Options of a
    /// request take precedence, and all parts of an answer are always captured.
    #[must_use]
    pub fn with_options(self, options: ChatOptions) -> Self {
        Self { options, ..self }
    }

    /// Returns the model with a function that receives the adjustments of every request before it
    /// is sent.
    ///
    /// ```
    /// use threadfold_genai::GenaiModel;
    ///
    /// let model = GenaiModel::new(genai::Client::new()?, "gpt-5").on_adjusted(|adjustments| {
    ///     for adjustment in adjustments {
    ///         eprintln!("{adjustment}");
    ///     }
    /// });
    /// assert_eq!(format!("{model:?}"), "GenaiModel { .. }");
    /// # Ok::<(), genai::Error>(())
    /// ```
    #[must_use]
    pub fn on_adjusted(self, observer: impl Fn(&[Adjustment]) + Send + Sync + 'static) -> Self {
        Self { observer: Arc::new(observer), ..self }
    }

    /// The adapter and the name of the model without its namespace, as far as the specification
    /// states them; `None` for a name of which genai knows no adapter.
    fn adapter_and_name(&self) -> Option<(AdapterKind, &str)> {
        let (adapter, name) = match &self.model {
            ModelSpec::Name(name) => (AdapterKind::from_model(name.as_str()).ok()?, name),
            ModelSpec::Iden(iden) => (iden.adapter_kind, &iden.model_name),
            ModelSpec::Target(target) => (target.model.adapter_kind, &target.model.model_name),
        };
        let (_, name) = name.namespace_and_name();
        Some((adapter, name))
    }

    async fn open(&self, request: Request) -> Result<Arriving, ModelError> {
        let resolved = self.client.resolve_service_target(self.model.clone()).await;
        let iden = resolved.map_err(failure)?.model;
        let (_, name) = iden.model_name.namespace_and_name();
        let target = Target::new(iden.adapter_kind, name);
        let converted = to_genai(&request, &target).map_err(|error| {
            ModelError::new(ModelErrorKind::Other, error.to_string()).with_source(error)
        })?;
        (self.observer)(&converted.adjustments);
        let Converted { request: chat, options, adjustments } = converted;
        let options = merged(self.options.clone(), options, request.timeout);
        // The thread is not needed while the answer arrives, so its memory is freed.
        drop(request);
        let response = self.client.exec_chat_stream(self.model.clone(), chat, Some(&options)).await;
        let stream = Some(response.map_err(failure)?.stream);
        let (answer, ready) = (Streamed::new(target), VecDeque::new());
        Ok(Arriving { stream, answer, ready, adjustments })
    }
}

/// The failure now: a provider may ask to wait until a date.
fn failure(error: genai::Error) -> ModelError {
    error_from_genai(error, std_clock().now())
}

#[async_trait]
impl Model for GenaiModel {
    async fn complete(&self, request: Request) -> Result<Answer, ModelError> {
        model::answer_of(self.stream(request)).await
    }

    fn stream(&self, request: Request) -> BoxStream<'_, Result<Delta, ModelError>> {
        let deltas = self.open(request).map(|opened| match opened {
            Ok(arriving) => stream::unfold(arriving, |mut arriving| async move {
                let item = arriving.next().await?;
                Some((item, arriving))
            })
            .boxed(),
            Err(error) => stream::once(future::ready(Err(error))).boxed(),
        });
        deltas.flatten_stream().boxed()
    }

    /// What the name of the model states, as for the requests. A resolver of the client may map the
    /// name to another model.
    fn binds_reasoning(&self) -> bool {
        let Some((adapter, name)) = self.adapter_and_name() else { return false };
        Target::new(adapter, name).options().binds_reasoning
    }

    fn context_window(&self) -> Option<ContextWindow> {
        let (adapter, name) = self.adapter_and_name()?;
        // On local servers and Copilot the window differs from the published one.
        let own = matches!(
            adapter,
            AdapterKind::Ollama
                | AdapterKind::Omlx
                | AdapterKind::GithubCopilot
                | AdapterKind::Custom(_)
        );
        (!own).then(|| ContextWindow::for_model(name)).flatten()
    }
}

impl fmt::Debug for GenaiModel {
    /// Omits the client, which may hold keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GenaiModel").finish_non_exhaustive()
    }
}

/// Returns the options of the host, overridden by those of the request.
fn merged(host: ChatOptions, said: ChatOptions, timeout: Option<Duration>) -> ChatOptions {
    let extra_body = match (said.extra_body, host.extra_body) {
        (Some(Value::Object(mut fields)), Some(Value::Object(wanted))) => {
            fields.extend(wanted);
            Some(Value::Object(fields))
        }
        (said, wanted) => said.or(wanted),
    };
    ChatOptions {
        max_tokens: said.max_tokens.or(host.max_tokens),
        temperature: said.temperature.or(host.temperature),
        tool_choice: said.tool_choice.or(host.tool_choice),
        stream_header_timeout: timeout.or(host.stream_header_timeout),
        stream_read_timeout: timeout.or(host.stream_read_timeout),
        capture_usage: Some(true),
        capture_content: Some(true),
        capture_reasoning_content: Some(true),
        capture_tool_calls: Some(true),
        extra_body,
        ..host
    }
}

/// An answer that is being received.
struct Arriving {
    /// `None` after the last item, when nothing more may be read.
    stream: Option<ChatStream>,
    answer: Streamed,
    ready: VecDeque<Delta>,
    /// The adjustments of the request, with the rewritten names of tools.
    adjustments: Vec<Adjustment>,
}

impl Arriving {
    async fn next(&mut self) -> Option<Result<Delta, ModelError>> {
        loop {
            if let Some(delta) = self.ready.pop_front() {
                return Some(Ok(wire::as_declared(delta, &self.adjustments)));
            }
            match self.stream.as_mut()?.next().await {
                Some(Ok(event)) => self.ready.extend(self.answer.handle(event)),
                Some(Err(error)) => {
                    self.stream = None;
                    return Some(Err(failure(error)));
                }
                None => {
                    self.stream = None;
                    let kind = ModelErrorKind::Retryable { after: None };
                    let words = "the answer broke off before it was complete";
                    return Some(Err(ModelError::new(kind, words)));
                }
            }
            if matches!(self.ready.back(), Some(Delta::Answer { .. })) {
                self.stream = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use genai::ModelIden;

    use super::*;

    fn window(model: impl Into<ModelSpec>) -> Option<u64> {
        let client = Client::new().unwrap();
        GenaiModel::new(client, model).context_window().map(ContextWindow::tokens)
    }

    #[test]
    fn the_window_depends_on_the_name_unless_the_route_has_its_own() {
        assert_eq!(window("claude-sonnet-4-5"), Some(200_000));
        assert_eq!(window("openai::gpt-5.2"), Some(400_000));
        assert_eq!(window(ModelIden::new(AdapterKind::Gemini, "gemini-2.5-pro")), Some(1_048_576));
        assert_eq!(window("my-own-model"), None);
        assert_eq!(window("github_copilot::gpt-5.2"), None);
        assert_eq!(window(ModelIden::new(AdapterKind::Ollama, "gpt-5.2")), None);
    }

    #[test]
    fn the_name_states_whether_the_provider_binds_reasoning() {
        let binds =
            |model: ModelSpec| GenaiModel::new(Client::new().unwrap(), model).binds_reasoning();
        assert!(binds("claude-opus-5-5".into()));
        assert!(binds("openai_resp::gpt-6.2-sol".into()));
        assert!(binds(ModelIden::new(AdapterKind::OpenAIResp, "gpt-6.2-sol").into()));
        assert!(!binds("claude-sonnet-4-5".into()));
        assert!(!binds("my-own-model".into()));
    }
}
