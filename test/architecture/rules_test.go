package architecture

// Packages are named without the module's prefix hubcloud/. A pattern that ends in /... matches the
// folder and every package below it, as in the go command.

// importRule limits what the packages of a pattern may import.
type importRule struct {
	packages string
	// allowed are patterns of packages of this module, apart from the package itself.
	allowed []string
	// libraries, if not nil, are the only packages from outside the module and the standard library
	// that may be imported.
	libraries []string
	reason    string
}

// importRules apply to production code. Of several rules that match a package, the most specific
// counts.
var importRules = []importRule{
	{
		packages: "domain/...",
		libraries: []string{
			"github.com/oklog/ulid/v2",
			"golang.org/x/net/idna",
			"golang.org/x/text/unicode/norm",
		},
		reason: "the rules are pure: importing them brings no I/O",
	},
	{
		packages: "domain/attention", allowed: []string{"domain"}, libraries: []string{},
		reason: "what needs attention depends on the reported state only, and mails on that and on preferences",
	},

	{
		packages: "streams/...", allowed: []string{"domain", "streams/..."},
		reason: "all other folders depend on the streams",
	},
	{
		packages: "streams", allowed: []string{"domain", "streams/disk", "streams/jsapi", "streams/telemetry"},
		reason: "names and connections are the base of all packages below streams",
	},
	{
		packages: "streams/jsapi", allowed: []string{"domain"},
		reason: "JetStream's API knows no stream of this service",
	},
	{
		packages: "streams/feed",
		allowed: []string{
			"domain", "streams", "streams/journal", "streams/jsapi", "streams/telemetry",
			"streams/views",
		},
		reason: "hub logs and the directory are independent sources of truth; readers do not know " +
			"who writes the streams",
	},
	{
		packages: "streams/feed/orgfeed",
		allowed: []string{
			"domain", "streams/feed", "streams/journal", "streams/jsapi", "streams/shares",
			"streams/telemetry",
		},
		reason: "feeds of organizations read hub logs and add no stream of their own",
	},
	{
		packages: "streams/book", allowed: []string{"domain", "streams", "streams/jsapi"},
		reason: "it knows feeds, leases and the directory by what it calls of them only",
	},
	{
		packages: "streams/journal",
		allowed:  []string{"domain", "streams", "streams/jsapi", "streams/telemetry"},
		reason:   "journals are what is durable: they do not depend on views of theirs",
	},
	{
		packages: "streams/views",
		allowed:  []string{"domain", "streams", "streams/journal", "streams/jsapi", "streams/telemetry"},
		reason:   "views are written from the journal alone: they do not read hub logs",
	},
	{
		packages: "streams/directory",
		allowed: []string{
			"domain", "streams", "streams/shares", "streams/jsapi", "streams/telemetry",
		},
		reason: "hub logs and the directory are independent sources of truth",
	},
	{
		packages: "streams/disk", allowed: []string{"domain"}, libraries: []string{},
		reason: "files are written and locked by many packages, of virtual hubs too",
	},
	{
		packages: "streams/telemetry", allowed: []string{"domain"},
		libraries: []string{
			"github.com/prometheus/client_golang/prometheus",
			"github.com/prometheus/client_golang/prometheus/promauto",
			"go.opentelemetry.io/otel/attribute", "go.opentelemetry.io/otel/codes",
			"go.opentelemetry.io/otel/propagation",
			"go.opentelemetry.io/otel/semconv/v1.43.0", "go.opentelemetry.io/otel/trace",
		},
		reason: "every package may use it: importing it brings no exporter",
	},

	{
		packages: "hubbridge/...", allowed: []string{"domain", "streams/...", "hubbridge/..."},
		reason: "the bridge must work while Postgres is down",
	},
	{
		packages: "hubbridge/statelog",
		allowed:  []string{"domain", "streams/...", "projections/devicestate"},
		reason:   "it folds the logs itself, so that it works while Postgres is down",
	},
	{
		packages: "hubbridge/protocol", libraries: []string{},
		reason: "the messages are shared with hubs, which know nothing of the cloud",
	},
	{
		packages: "hubbridge/codec", allowed: []string{"domain", "hubbridge/protocol"},
		libraries: []string{"github.com/go-json-experiment/json/jsontext"},
		reason:    "decoding is pure: it connects to nothing and keeps nothing",
	},
	{
		packages: "hubbridge/kit/hub/...",
		allowed: []string{
			"domain", "hubbridge/protocol", "hubbridge/kit/hub/...", "streams/disk",
		},
		reason: "hubs of others are built on it: it shares only the messages with the cloud",
	},
	{
		packages: "hubbridge/kit/...",
		allowed:  []string{"domain", "hubbridge/protocol", "hubbridge/kit/..."},
		reason:   "a virtual hub shares only the messages with the cloud, since it tests the cloud",
	},
	{
		packages: "hubbridge/kit/check",
		allowed: []string{
			"domain", "hubbridge/protocol", "hubbridge/codec", "hubbridge/identity",
			"hubbridge/kit/hub", "streams", "streams/disk",
		},
		reason: "the check plays the service, with the service's own enrolment and decoders",
	},

	{
		packages: "projections/...", allowed: []string{"domain", "streams/...", "projections/..."},
		reason: "read models are built from streams only, so that they can be rebuilt",
	},
	{
		packages: "projections/alarms",
		allowed: []string{
			"domain", "domain/attention", "projections/readmodel",
			"projections/schema", "streams/outbox", "streams/shares", "streams/telemetry",
		},
		reason: "mails about conditions are decided by package attention, from read models",
	},
	{
		packages: "projections/readmodel",
		allowed: []string{
			"domain", "projections/schema", "streams/shares",
			"streams/telemetry",
		},
		reason: "queries read Postgres only",
	},
	{
		packages: "projections/devicestate", allowed: []string{"domain", "domain/attention"},
		reason: "the state of a log does not depend on where the log was read",
	},
	{
		packages: "projections/schema",
		allowed: []string{
			"domain", "projections/devicestate", "streams/directory",
		},
		reason: "what the tables are does not depend on who writes or reads them",
	},
	{
		packages: "projections/projector",
		allowed: []string{
			"domain", "projections/devicestate", "projections/schema",
			"streams/...",
		},
		reason: "the engine does not depend on the queries, nor on what starts it on another schema",
	},

	{
		packages: "httpapi/...",
		allowed: []string{
			"domain", "domain/attention", "hubbridge/protocol", "httpapi/...",
			"streams", "streams/disk", "streams/shares", "streams/telemetry",
		},
		reason: "the API is an adapter: it uses interfaces that it declares itself, and those of feeds",
	},
	{
		packages: "httpapi/client", libraries: []string{},
		reason: "importing the client brings only the standard library",
	},
	{
		packages: "httpapi/response", allowed: []string{"domain"}, libraries: []string{},
		reason: "API and portal write errors and streams with it",
	},
	{
		packages: "streams/shares", allowed: []string{"domain"},
		reason: "every layer limits what organizations share with it",
	},
	{
		packages: "httpapi/webhook",
		allowed:  []string{"domain", "streams", "streams/shares", "streams/telemetry"},
		reason:   "it knows feeds, leases and the directory by what it calls of them only",
	},

	{
		packages: "cmd/hubcloud", allowed: []string{"cmd/hubcloud/internal/cli"},
		libraries: []string{},
		reason:    "package main calls the command line and does nothing else",
	},
	{
		packages: "deploy/...",
		reason:   "programs of the documentation use only what is public",
	},
}

// importerRule limits which packages may import a package.
type importerRule struct {
	// imported is a pattern of packages of this module, or of a library by its full path.
	imported string
	// by are patterns of the packages of this module that may import it.
	by     []string
	reason string
}

var importerRules = []importerRule{
	{
		"cmd/...", []string{"cmd/..."}, "the program is wiring: nothing depends on it",
	},
	{
		"cmd/hubcloud/internal/cli", []string{"cmd/hubcloud"},
		"the command line calls the server, never the other way round",
	},
	{
		"cmd/hubcloud/internal/server", []string{"cmd/hubcloud/internal/cli"},
		"only commands start the server",
	},
	{
		"hubbridge/kit/...",
		[]string{"hubbridge/kit/...", "cmd/hubcloud/internal/cli", "cmd/hubcloud/internal/server"},
		"the service uses no hub in software: its wiring only runs them beside it",
	},
	{
		"streams/views", []string{"streams/feed", "cmd/hubcloud/internal/server"},
		"the holder of a group's lease writes the views; readers know their format",
	},
	{
		"streams/journal",
		[]string{
			"streams/views", "streams/feed", "streams/backup", "hubbridge", "hubbridge/ingest",
			"hubbridge/statelog", "projections/projector", "streams/feed/orgfeed",
			"cmd/hubcloud/internal/installation", "cmd/hubcloud/internal/server",
		},
		"others append to hub logs and read them",
	},
	{
		"streams/jsapi",
		[]string{
			"streams/...", "hubbridge/...", "projections/projector",
			"cmd/hubcloud/internal/doctor", "cmd/hubcloud/internal/installation",
			"cmd/hubcloud/internal/server",
		},
		"others use the packages that own the streams",
	},

	{
		"github.com/nats-io/nats.go/...",
		[]string{
			"streams/...", "hubbridge/...", "projections/...", "cmd/hubcloud/internal/...",
			"deploy/docs/tapclient",
		},
		"domain and httpapi do not know the broker",
	},
	{
		"github.com/nats-io/nats-server/...",
		[]string{"streams/broker", "streams/backup", "cmd/hubcloud/internal/doctor"},
		"only package broker runs a server; backup reads its archives, the doctor its statistics",
	},
	{
		"github.com/jackc/pgx/...", []string{
			"projections/...", "cmd/hubcloud/internal/doctor", "cmd/hubcloud/internal/server",
		},
		"Postgres is behind projections",
	},
	{
		"github.com/eclipse/paho.mqtt.golang/...",
		[]string{"hubbridge/kit/hub", "hubbridge/kit/check"},
		"the cloud's end of MQTT is the broker; package check must see each packet of a hub",
	},
	{
		"github.com/alecthomas/kong", []string{"cmd/hubcloud/internal/cli"},
		"flags are read in one place",
	},
	{
		"github.com/wneessen/go-mail", []string{"httpapi/mail"}, "mails are written in one place",
	},
	{
		"github.com/go-json-experiment/...",
		[]string{"hubbridge/codec", "projections/devicestate"},
		"untrusted messages are decoded in one place, and their stored form where each event is folded",
	},
	{
		"go.opentelemetry.io/otel/sdk/...", []string{"cmd/hubcloud/internal/server"},
		"no package depends on a collector of traces",
	},
	{
		"go.opentelemetry.io/otel/exporters/...", []string{"cmd/hubcloud/internal/server"},
		"no package depends on a collector of traces",
	},
}

// textRule limits which packages may have a text.
type textRule struct {
	text   string
	in     []string
	reason string
}

// textRules are about string literals that contain the text.
var textRules = []textRule{
	{"$JS.", []string{"streams/jsapi"}, "JetStream's API is spoken in one package"},
	{"$KV.", []string{"streams/jsapi"}, "JetStream's API is spoken in one package"},
	{"Nats-Batch-", []string{"streams/jsapi"}, "JetStream's API is spoken in one package"},
	{
		"text/event-stream", []string{"httpapi/response", "httpapi/client", "httpapi/portal"},
		"SSE is written by response and read by client; portal compares the header Accept",
	},
	{": keepalive", []string{"httpapi/response"}, "SSE is written by one package"},
	{`"through":`, []string{"hubbridge/codec"}, "acks are encoded by one package"},
}

// callRules are about methods and functions, of any package, that have the text as their name.
var callRules = []textRule{
	{
		"OpenWriter", []string{"streams/journal"},
		"a journal has one writer: the holder of its group's lease",
	},
}
