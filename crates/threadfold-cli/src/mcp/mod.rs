//! `mcp`: stored threads as read-only tools of an agent, over the Model Context Protocol.

use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt,
    model::{
        CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
        JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
    },
    service::RequestContext,
};
use serde_json::Value;

use self::stored::Stored;
pub(crate) use self::stored::stored_thread;
use crate::{
    args::McpArguments,
    error::{Ended, Failure},
};

mod stored;
mod tools;

/// The description of the server for the agent's model.
const INSTRUCTIONS: &str = "Threads of agents that were compacted to fit a context window. Nothing is \
    ever deleted: if a summary leaves out an exact error, number, path or demand, look for it here.";

pub(crate) fn run(arguments: &McpArguments) -> Result<Ended, Failure> {
    let stored = Stored::open(&arguments.paths)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(async {
        let service = Server { stored }.serve((tokio::io::stdin(), tokio::io::stdout())).await?;
        service.waiting().await?;
        Ok(Ended::Done)
    });
    // A pending read of standard input would block the shutdown until the next line.
    runtime.shutdown_background();
    served
}

struct Server {
    stored: Stored,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(Implementation::new("threadfold", env!("CARGO_PKG_VERSION")))
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::specs()))
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let input = call.arguments.unwrap_or_default();
        // Return failures as results and not as errors of the protocol, so that the model can read
        // them.
        let result = match self.answer(&call.name, input).await {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.line())]),
        };
        Ok(result.into())
    }
}

impl Server {
    async fn answer(&self, tool: &str, mut input: JsonObject) -> Result<String, Failure> {
        let thread = match input.remove("thread") {
            None | Some(Value::Null) => None,
            Some(Value::String(id)) => Some(id),
            Some(other) => return Err(format!("thread must be an id, found {other}").into()),
        };
        let thread = thread.as_deref();
        match tool {
            tools::THREADS => tools::threads(&self.stored, &input).await,
            tools::RECALL => tools::recall(&self.stored, thread, input).await,
            tools::SEARCH => tools::search(&self.stored, thread, input).await,
            tools::AUDIT => tools::audit(&self.stored, thread).await,
            other => Err(format!("there is no tool {other}").into()),
        }
    }
}
