package streamstest

import "go.uber.org/goleak"

// Leaks are the options of a leak check in a package whose tests run a broker. A broker that is
// shut down while a stream is being made can leave that stream's own loop behind, and with it the
// clock that all streams share; that is the NATS server's, and ends with the process.
func Leaks() []goleak.Option {
	return []goleak.Option{
		goleak.IgnoreAnyFunction(
			"github.com/nats-io/nats-server/v2/server.(*fileStore).flushStreamStateLoop",
		),
		goleak.IgnoreAnyFunction("github.com/nats-io/nats-server/v2/server/ats.Register.func1"),
	}
}
