//! The main loop: messages of the client in order, and what the other thread has made in between.

use super::background::{Background, Job, Made, Outcome, What};
use super::capabilities::capabilities;
use super::checking::{Checking, Text};
use super::document::Document;
use super::positions::Encoding;
use super::transport::{self, Outgoing};
use super::{
    actions, commands, completion, diagnostics, folding, formatting, hints, hover, lenses, navigation,
    rename, semantic, signature, symbols,
};
use crossbeam_channel::{Receiver, Sender, select, unbounded};
use gen_lsp_types as lsp;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::error::Error;
use std::thread;
use std::time::Duration;

/// How long nobody must have said anything before all kernels of a text are compiled, and where none has changed.
const QUIET: Duration = Duration::from_millis(100);
const LONG: Duration = Duration::from_secs(3600);

type Failure = Box<dyn Error + Send + Sync>;

/// Serves one client over standard input and output, until it says goodbye.
///
/// # Errors
/// The connection breaks.
pub fn serve() -> Result<(), Failure> {
    let (connection, client, threads) = transport::stdio()?;
    let (id, parameters) = match connection.initialize_start() {
        Ok(request) => request,
        Err(error) => {
            drop((connection, client));
            // Why nothing came is what the thread that reads knows.
            threads.join()?;
            return Err(error.into());
        }
    };
    let parameters: lsp::InitializeParams = serde_json::from_value(parameters)?;
    let general = parameters.capabilities.general.as_ref();
    let encoding = Encoding::choose(general.and_then(|known| known.position_encodings.as_deref()));
    let refreshes = parameters
        .capabilities
        .workspace
        .as_ref()
        .and_then(|known| known.inlay_hint.as_ref())
        .and_then(|known| known.refresh_support)
        .unwrap_or(false);
    let result = lsp::InitializeResult {
        capabilities: capabilities(encoding),
        server_info: Some(lsp::ServerInfo {
            name: "krn".to_string(),
            version: Some(env!("CARGO_PKG_VERSION").to_string()),
        }),
    };
    connection.initialize_finish(id, serde_json::to_value(result)?)?;
    let mut server = Server {
        client,
        encoding,
        refreshes,
        documents: HashMap::new(),
        unreported: BTreeSet::new(),
        checking: Checking::start(),
        background: Background::start(),
        answers: unbounded(),
        asked: 0,
        waiting: Vec::new(),
    };
    server.run(&connection)?;
    drop(server);
    drop(connection);
    threads.join()?;
    Ok(())
}

struct Server {
    client: Sender<Outgoing>,
    encoding: Encoding,
    /// Whether the client asks for hints again when it is told to.
    refreshes: bool,
    documents: HashMap<String, Document>,
    /// Texts without mistakes whose kernels are compiled when there is nothing else to do.
    unreported: BTreeSet<String>,
    checking: Checking,
    background: Background,
    /// Answers of commands, which take as long as the tool runs.
    answers: (Sender<Response>, Receiver<Response>),
    /// Requests that the server has made.
    asked: i32,
    /// Requests for hints that are answered when the other thread has made what they want.
    waiting: Vec<Waiting>,
}

/// A request for the hints of a part of a text.
struct Waiting {
    id: RequestId,
    uri: String,
    range: lsp::Range,
}

/// What a request comes to: JSON.
type Answer = Result<String, (ErrorCode, String)>;

impl Server {
    fn run(&mut self, connection: &Connection) -> Result<(), Failure> {
        loop {
            let idle = if self.unreported.is_empty() { LONG } else { QUIET };
            let (made, answers) = (self.background.made.clone(), self.answers.1.clone());
            let checked = self.checking.checked.clone();
            select! {
                recv(connection.receiver) -> message => match message? {
                    Message::Request(request) if connection.handle_shutdown(&request)? => return Ok(()),
                    Message::Request(request) => self.request(request)?,
                    Message::Notification(notification) => self.notification(notification)?,
                    Message::Response(_) => {}
                },
                recv(checked) -> text => self.checked(text?)?,
                recv(made) -> made => self.made(made?)?,
                recv(answers) -> answer => self.send(Message::Response(answer?))?,
                default(idle) => self.report(),
            }
        }
    }

    fn send(&self, message: Message) -> Result<(), Failure> {
        Ok(self.client.send(Outgoing::Message(message))?)
    }

    fn notify(&self, method: &str, parameters: impl Serialize) -> Result<(), Failure> {
        self.send(Message::Notification(Notification::new(method.to_string(), parameters)))
    }

    fn notification(&mut self, notification: Notification) -> Result<(), Failure> {
        match notification.method.as_str() {
            "textDocument/didOpen" => {
                let parameters: lsp::DidOpenTextDocumentParams = serde_json::from_value(notification.params)?;
                let opened = parameters.text_document;
                self.put(Document::new(opened.uri, opened.version, opened.text, self.encoding));
            }
            "textDocument/didChange" => {
                let parameters: lsp::DidChangeTextDocumentParams =
                    serde_json::from_value(notification.params)?;
                let version = parameters.text_document.version;
                let uri = parameters.text_document.text_document_identifier.uri.0;
                let changed =
                    self.documents.get(&uri).map(|old| old.changed(version, parameters.content_changes));
                changed.into_iter().for_each(|document| self.put(document));
                self.give_up(&uri)?;
            }
            "textDocument/didClose" => {
                let parameters: lsp::DidCloseTextDocumentParams =
                    serde_json::from_value(notification.params)?;
                let uri = parameters.text_document.uri;
                self.documents.remove(&uri.0);
                self.unreported.remove(&uri.0);
                self.background.text(&uri.0, None);
                self.give_up(&uri.0)?;
                let parameters =
                    lsp::PublishDiagnosticsParams { uri, version: None, diagnostics: Vec::new() };
                self.notify("textDocument/publishDiagnostics", parameters)?;
            }
            _ => {}
        }
        Ok(())
    }

    fn put(&mut self, document: Document) {
        let uri = document.uri.0.clone();
        let (version, analysis) = (document.version, document.analysis.clone());
        self.background.text(&uri, Some(version));
        self.unreported.remove(&uri);
        let before = self.documents.insert(uri.clone(), document).map(|before| before.analysis);
        self.checking.check(Text { uri, version, analysis, before });
    }

    /// Tells what is wrong with a text, once that is known.
    fn checked(&mut self, (uri, version): (String, i32)) -> Result<(), Failure> {
        let Some(document) = self.documents.get(&uri).filter(|known| known.version == version) else {
            return Ok(());
        };
        self.tell(&uri)?;
        if !document.diagnostics().has_errors() {
            self.unreported.insert(uri);
        }
        Ok(())
    }

    /// Has the kernels compiled of the texts that have changed.
    fn report(&mut self) {
        for uri in std::mem::take(&mut self.unreported) {
            let Some(document) = self.documents.get(&uri) else { continue };
            let kernels = document.kernels().map(|kernel| kernel.name.name.clone()).collect();
            self.ask(document, What::Reports, kernels);
        }
    }

    fn tell(&self, uri: &str) -> Result<(), Failure> {
        let Some(document) = self.documents.get(uri) else { return Ok(()) };
        let parameters = lsp::PublishDiagnosticsParams {
            uri: document.uri.clone(),
            version: Some(document.version),
            diagnostics: diagnostics::published(document),
        };
        self.notify("textDocument/publishDiagnostics", parameters)
    }

    fn ask(&self, document: &Document, what: What, kernels: Vec<String>) {
        let (uri, version, source) = (document.uri.0.clone(), document.version, document.source().clone());
        self.background.ask(Job { uri, version, source, what, kernels });
    }

    fn made(&mut self, made: Made) -> Result<(), Failure> {
        let Some(document) = self.documents.get_mut(&made.uri) else { return Ok(()) };
        if document.version != made.version {
            return Ok(());
        }
        match made.result {
            Outcome::Chosen(chosen) => {
                document.generated.kernels.insert(made.kernel, chosen);
                self.answer_waiting(&made.uri)?;
            }
            Outcome::Reports(reports) => {
                let news = !reports.is_empty();
                document.generated.reports.insert(made.kernel, reports);
                if news {
                    self.tell(&made.uri)?;
                }
            }
            Outcome::Done if self.refreshes => {
                self.asked += 1;
                let id = RequestId::from(self.asked);
                let request = Request::new(id, "workspace/inlayHint/refresh".to_string(), Value::Null);
                self.send(Message::Request(request))?;
            }
            Outcome::Done => {}
        }
        Ok(())
    }

    fn request(&mut self, request: Request) -> Result<(), Failure> {
        let id = request.id.clone();
        let answer = match request.method.as_str() {
            "workspace/executeCommand" => match self.execute(request) {
                Ok(()) => return Ok(()),
                Err(failure) => Err(failure),
            },
            "textDocument/inlayHint" if !self.refreshes => match self.wait(&request) {
                true => return Ok(()),
                false => self.answer(request),
            },
            _ => self.answer(request),
        };
        self.reply(id, answer)
    }

    fn reply(&self, id: RequestId, answer: Answer) -> Result<(), Failure> {
        let outgoing = match answer {
            Ok(text) => Outgoing::Answer(id, text),
            Err((code, message)) => {
                Outgoing::Message(Message::Response(Response::new_err(id, code as i32, message)))
            }
        };
        Ok(self.client.send(outgoing)?)
    }

    /// A client that is not told to ask again is answered when all hints are there: whether this one has to wait for some.
    fn wait(&mut self, request: &Request) -> bool {
        let uri = request.params["textDocument"]["uri"].as_str().unwrap_or_default().to_string();
        let (Some(document), Ok(range)) = (self.documents.get(&uri), parsed(request.params["range"].clone()))
        else {
            return false;
        };
        self.missing_hints(document, range);
        let waits = is_missing(document, range);
        if waits {
            self.waiting.push(Waiting { id: request.id.clone(), uri, range });
        }
        waits
    }

    /// Answers who waited for what has been made of a text.
    fn answer_waiting(&mut self, uri: &str) -> Result<(), Failure> {
        let Some(document) = self.documents.get(uri) else { return Ok(()) };
        let ready = |known: &mut Waiting| known.uri == uri && !is_missing(document, known.range);
        for known in self.waiting.extract_if(.., ready).collect::<Vec<_>>() {
            self.reply(known.id, given(hints::hints(document, known.range)))?;
        }
        Ok(())
    }

    /// Tells who waited for hints of a text that there is another one now, or none.
    fn give_up(&mut self, uri: &str) -> Result<(), Failure> {
        for known in self.waiting.extract_if(.., |known| known.uri == uri).collect::<Vec<_>>() {
            self.reply(
                known.id,
                Err((ErrorCode::ContentModified, "the text has changed since".to_string())),
            )?;
        }
        Ok(())
    }

    /// Runs the tool beside the server, and answers when it has ended.
    fn execute(&self, request: Request) -> Result<(), (ErrorCode, String)> {
        let parameters: lsp::ExecuteCommandParams = parsed(request.params)?;
        let wanted: Vec<String> = parsed(json!(parameters.arguments.unwrap_or_default()))?;
        let [uri, kernel] = wanted.as_slice() else {
            return Err((
                ErrorCode::InvalidParams,
                "the file's URI and the kernel's name are wanted".to_string(),
            ));
        };
        let (text, kernel) = (self.open(uri)?.text().to_string(), kernel.clone());
        let answers = self.answers.0.clone();
        thread::spawn(move || {
            let response = match commands::execute(&parameters.command, &kernel, &text) {
                Ok(value) => Response::new_ok(request.id, value),
                Err(message) => Response::new_err(request.id, ErrorCode::RequestFailed as i32, message),
            };
            // Whoever asked may be gone.
            let _ = answers.send(response);
        });
        Ok(())
    }

    fn open(&self, uri: &str) -> Result<&Document, (ErrorCode, String)> {
        let missing = || (ErrorCode::InvalidParams, format!("`{uri}` is not open"));
        self.documents.get(uri).ok_or_else(missing)
    }

    fn answer(&mut self, request: Request) -> Answer {
        let parameters = request.params;
        if request.method == "codeAction/resolve" {
            let action: lsp::CodeAction = parsed(parameters)?;
            let Some(uri) = action.data.as_ref().and_then(|data| data["uri"].as_str()) else {
                return given(action);
            };
            let resolved = actions::resolved(self.open(uri)?, action.clone());
            return given(resolved.map_err(|message| (ErrorCode::ContentModified, message))?);
        }
        let uri = parameters["textDocument"]["uri"].as_str().unwrap_or_default().to_string();
        let document = match self.open(&uri) {
            Ok(document) => document,
            Err(_) if !request.method.starts_with("textDocument/") => {
                return Err((ErrorCode::MethodNotFound, format!("there is no `{}`", request.method)));
            }
            Err(failure) => return Err(failure),
        };
        let place = || parsed::<lsp::Position>(parameters["position"].clone());
        let range = || parsed::<lsp::Range>(parameters["range"].clone());
        match request.method.as_str() {
            "textDocument/hover" => given(hover::hover(document, place()?)),
            "textDocument/definition" => given(navigation::definition(document, place()?)),
            "textDocument/references" => {
                let declaration = parameters["context"]["includeDeclaration"].as_bool().unwrap_or(true);
                given(navigation::references(document, place()?, declaration))
            }
            "textDocument/documentHighlight" => given(navigation::highlights(document, place()?)),
            "textDocument/prepareRename" => given(rename::prepare(document, place()?)),
            "textDocument/rename" => {
                let name = parameters["newName"].as_str().unwrap_or_default();
                let edit = rename::rename(document, place()?, name);
                given(edit.map_err(|message| (ErrorCode::RequestFailed, message))?)
            }
            "textDocument/completion" => given(completion::completion(document, place()?)),
            "textDocument/signatureHelp" => given(signature::help(document, place()?)),
            "textDocument/documentSymbol" => given(symbols::outline(document)),
            "textDocument/semanticTokens/full" => given(semantic::tokens(document)),
            "textDocument/foldingRange" => given(folding::folding(document)),
            "textDocument/formatting" => given(formatting::formatting(document)),
            "textDocument/codeLens" => given(lenses::lenses(document)),
            "textDocument/codeAction" => given(actions::actions(document, range()?)),
            "textDocument/inlayHint" => {
                let range = range()?;
                // While the other thread checks.
                document.names();
                let known = given(hints::hints(document, range));
                self.missing_hints(document, range);
                known
            }
            method => Err((ErrorCode::MethodNotFound, format!("there is no `{method}`"))),
        }
    }

    /// Has the kernels in view compiled of which nobody has asked yet.
    fn missing_hints(&self, document: &Document, range: lsp::Range) {
        if document.diagnostics().has_errors() {
            return;
        }
        let names = hints::in_range(document, range).into_iter().map(|kernel| kernel.name.name.clone());
        let mut asked = document.generated.asked.borrow_mut();
        let missing: Vec<String> = names.filter(|name| asked.insert(name.clone())).collect();
        if !missing.is_empty() {
            self.ask(document, What::Hints, missing);
        }
    }
}

/// Whether hints are still to be made of kernels in a range.
fn is_missing(document: &Document, range: lsp::Range) -> bool {
    let kernels = &document.generated.kernels;
    !document.diagnostics().has_errors()
        && hints::in_range(document, range).iter().any(|kernel| !kernels.contains_key(&kernel.name.name))
}

fn parsed<T: DeserializeOwned>(value: Value) -> Result<T, (ErrorCode, String)> {
    serde_json::from_value(value).map_err(|error| (ErrorCode::InvalidParams, error.to_string()))
}

fn given(value: impl Serialize) -> Answer {
    serde_json::to_string(&value).map_err(|error| (ErrorCode::InternalError, error.to_string()))
}
