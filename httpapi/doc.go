// Package httpapi serves the HTTP API: sites, hubs, devices, commands, event logs, members and
// invitations under /v1, certificates for hubs under /link/v1, the portal's pages under /portal,
// and health and readiness at /healthz and /readyz. It is an adapter: everything that it serves
// comes through the interfaces of ports.go.
//
// # Answers
//
// Every answer, errors included, has X-Request-Id, a ULID that the error body repeats. All but
// /healthz and /readyz have RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset (seconds until
// the allowance is full) and RateLimit-Policy, as in drafts 03 to 07 of
// draft-ietf-httpapi-ratelimit-headers. Errors have the contract's error body and one of its types;
// an error that is not a domain.Error becomes internal_error, and only the log has its text (see
// response). The same holds for requests that net/http rejects because it cannot parse them, with
// 400, 417 or 431 and Connection: close, and for rejected connections (see Listener).
//
// Every request has one log line, one count and, if there is a collector, one span. They name the
// route and never the path, which may contain a secret. Calls to hubs carry the request's id
// (telemetry.WithRequest).
//
// # The OpenAPI document
//
// openapi.yaml describes all answers to programs, in OpenAPI 3.1. It is written by hand and served
// at /v1/openapi.yaml, with a page to read it and try requests at /v1/reference. Tests compare it
// with the routing table, the bodies' types, the domain's codes and scopes, in both directions;
// black-box tests produce each answer that it describes, and check every answer against it.
// openapi-root.yaml describes the routes outside /v1 in the same way.
//
// Generators of clients must understand the document, so it uses no `if`, no schemas that are true
// or false, no servers of single paths, and no defaults of fields. What that leaves open, two
// extensions say: x-error-types of an answer, and x-values-by-key for the value of a channel.
// The tests under test/openapi check both.
//
// The hub protocol is described at /link/, and the guides are at /docs/ (package docpages).
//
// # Order of errors
//
// 401 unauthenticated, 429 rate_limited, 403 insufficient_scope, then 404, 405 or 400, then the
// hub's own errors: a hub is never asked for what no hub would do. A request with a valid key
// counts on the rate limit of the key. A request without one, one that cannot be parsed, and every
// request for a certificate or a page counts on the client's address (for IPv6 its /64), so that
// guessing keys is soon answered with 429. Unknown paths under /v1 require a key too, so that
// callers without one learn nothing about paths. 405 has Allow and the type invalid_request. HEAD
// is answered for /healthz, /readyz, documents and pages only.
//
// Every route treats another organization's hub like one that does not exist: the hub's owner is
// looked up in memory before the rest of the request is examined.
//
// # Input
//
// Paths are matched as they are: `//`, dot segments and a trailing slash make a different path,
// which is not found. A letter and its percent-encoding are the same, but an encoded slash is not a
// separator. A body is one JSON object in UTF-8 with Content-Type application/json. Field names are
// case-sensitive; unknown and repeated fields and text after the object are errors that name the
// field. The body of a route that takes none is ignored. Unknown query parameters are ignored,
// because clients add their own; a known one must not be empty, repeated or out of bounds, and
// Idempotency-Key neither.
//
// # Limits
//
//	header, including the path    32 KiB (net/http adds 4 KiB)         431
//	time for the header           10 s, and for its first byte         400, or closed
//	body                          64 KiB                               400
//	nesting of a body             16 levels                            400
//	time for the body             10 s                                 400
//	idle connection               2 min                                closed
//	unread small answer           40 s; over HTTP/2 10 s               closed; reset
//	unread large answer, stream   10 s for each 64 KiB                 closed
//	slowly read page of events    30 s                                 ends early with has_more
//	unread answers of a key       Config.ResponseBytesPerKey           429
//	unread answers in all         Config.ResponseBytes                 429, 503
//	unread answers over HTTP/2    1,024 of an address                  reset
//	connections of an address     Config.ConnectionsPerAddress         429
//	connections                   Config.Connections                   503
//	requests, on all replicas     Config.Rate, Config.Burst            429
//	streams and reads of events   Config.StreamsPerKey, per replica    429
//	kernel memory                 2 * 128 KiB a connection, 2 * 64 KiB a stream
//	a request in all              20 s                                 503
//	a request to a hub            20 s and 2 * Config.HubTimeout       503
//
// A new connection beyond a limit first replaces the one that has been idle longest, or else the
// one whose client has not read an answer for longest, at least for a second; otherwise it is
// rejected, over TLS in TLS. All streams of a key take at most half of Config.Connections.
// deploy/docs/limits.md has the limits of commands, of calls to hubs, and of the objects that an
// organization creates.
//
// # Readers
//
// Pages of events answer how many events follow (Events-Behind) and when their position expires if
// that is soon (Events-Expire-In). Of readers that name themselves with the header Reader, a page
// records its next_cursor once it is written, and a stream its last id after each write
// (FeedReaders). Answers with errors record nothing.
//
// # Requests to hubs
//
// Nothing that a hub reports is stored. The name and room of a device, which are stored, are read
// while the hub is asked. The list of devices has the header Event-Cursor, a cursor of the hub's
// log from before the hub was asked, so that list and log together miss no change. Commands is
// responsible for a command whose caller has gone.
//
// # Streams
//
// Each stream is a response owned by the server's goroutine for the request (see response). It sends the
// events that are available in one write, and ends cleanly when its lifetime is over, its key is
// revoked, the hub's log is reset or Config.Draining is closed. A client that does not read is
// disconnected after at most ten seconds and delays no other. Between the events are keepalive
// comments and nothing else, since public clients pass on every other block as a message. With
// positions=true a stream begins with its position, and repeats it with each keepalive, and more
// often if Config.Retention is short, so that also a client that received no events can resume. On
// request it begins with the last reported states (snapshot), one page of them in memory at a time,
// and has a message once it has caught up.
//
// Streams follow the HTML standard's EventSource: 200 with text/event-stream begins a stream and
// any other answer makes the client give up, so 204 is never used; retry is left to the client.
// EventSource cannot set Authorization; clients in browsers use fetch. There is no CORS, because an
// organization's key does not belong in another site's page: preflights get 401 like any request
// without a key, and no answer has Access-Control-Allow-Origin.
package httpapi
