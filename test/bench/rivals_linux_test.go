package bench

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"hubcloud/streams/streamstest"
)

// hubcloudRival starts the service with that many hubs. It also returns the JSON of an event, which
// the other servers publish.
func hubcloudRival(b *bench, hubs int) (rival, string) {
	b.Helper()
	s := startService(b, "--log-level", "warn")
	all := s.senders(hubs)
	frames, err := s.frames(all.hubs[0], 1)
	if err != nil {
		b.Fatal(err)
	}
	_, event, _ := bytes.Cut(frames, []byte("data: "))
	return rival{
		name: "hubcloud", process: s.process, address: s.Service.HTTP,
		stream: func(topic int, after string) string {
			return s.streamRequest(all.hubs[topic], after)
		},
		publisher: func(topic int) (func() error, func(), error) {
			h := all.hubs[topic]
			m := newEventsMessage(h, 1)
			return func() error {
				if err := m.send(h); err != nil {
					return err
				}
				return h.acknowledged()
			}, h.disconnect, all.connect(h)
		},
		position: func(topic int) (string, error) {
			return s.positions(all.hubs[topic : topic+1])[0], nil
		},
	}, string(bytes.TrimSpace(event))
}

// bareRival starts a bare server, which stores nothing: each reader that resumes gets the same
// events from its memory.
func bareRival(b *bench, behind int, event string) rival {
	b.Helper()
	web := startBare(b, roleWeb, nothing{})
	web.do("/backlog", []byte(strings.Repeat("data: "+event+"\n\n", behind)), nil)
	r := httpRival("net/http", web.process, web.ready.HTTP, event, otherServer{
		stream: func(topic int, after string) string {
			return get(fmt.Sprintf("/stream/%d", topic), after)
		},
		publish: func(topic int, event string) string {
			return post(fmt.Sprintf("/stream/%d", topic), "application/json", "", event)
		},
	})
	r.position = func(int) (string, error) { return "any", nil }
	return r
}

// otherServer is a server of another project: how it is started, and its HTTP.
type otherServer struct {
	name, program string
	// arguments returns the command line for two addresses, of which the second has the profiles,
	// and a folder.
	arguments func(address, profiles, folder string) ([]string, error)
	// profiled reports that the first address has the profiles.
	profiled bool
	stream   func(topic int, after string) string
	publish  func(topic int, event string) string
	// position returns the position of an event from the answer to its publishing.
	position func(answer []byte) (string, error)
}

// startOther starts a server, which is killed when the test ends.
func startOther(b *bench, o otherServer, path, event string) rival {
	b.Helper()
	address, profiles := freeAddress(b), freeAddress(b)
	if o.profiled {
		profiles = address
	}
	arguments, err := o.arguments(address, profiles, b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	var output bytes.Buffer
	command := exec.Command(path, arguments...)
	command.Stdout, command.Stderr = &output, &output
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		command.Process.Kill()
		command.Wait()
		if b.Failed() {
			b.Logf("%s: %.2000s", o.name, &output)
		}
	})
	streamstest.EventuallyNil(b, o.name+" is ready", func() error {
		for _, a := range []string{address, profiles} {
			conn, err := net.Dial("tcp", a)
			if err != nil {
				return err
			}
			conn.Close()
		}
		return nil
	})
	p := process{pid: command.Process.Pid, admin: profiles}
	return httpRival(o.name, p, address, event, o)
}

// httpRival returns a rival to which events are posted.
func httpRival(name string, p process, address, event string, o otherServer) rival {
	at := strings.Index(event, stampPrefix) + len(stampPrefix)
	stamp := event[at : at+stampWidth]
	publisher := func(topic int) (*pageClient, func() error, error) {
		client, err := dialPages(address)
		request := []byte(o.publish(topic, event))
		place := bytes.Index(request, []byte(stamp))
		return client, func() error {
			patch(request[place:place+stampWidth], uint64(time.Now().UnixMicro()))
			return client.read(request)
		}, err
	}
	return rival{
		name: name, process: p, address: address, stream: o.stream,
		publisher: func(topic int) (func() error, func(), error) {
			client, publish, err := publisher(topic)
			return publish, func() { client.conn.Close() }, err
		},
		position: func(topic int) (string, error) {
			client, publish, err := publisher(topic)
			if err != nil {
				return "", err
			}
			defer client.conn.Close()
			if err := publish(); err != nil {
				return "", err
			}
			return o.position(client.body)
		},
	}
}

func freeAddress(b *bench) string {
	b.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// get returns a request for an event stream.
func get(path, lastEventID string) string {
	if lastEventID != "" {
		lastEventID = "Last-Event-ID: " + lastEventID + "\r\n"
	}
	return "GET " + path + " HTTP/1.1\r\nHost: localhost\r\n" + lastEventID + "\r\n"
}

func post(path, contentType, header, body string) string {
	return fmt.Sprintf(
		"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: %s\r\n%sContent-Length: %d\r\n\r\n%s",
		path, contentType, header, len(body), body,
	)
}

// secret is the key of Centrifugo's API and Mercure's tokens.
const secret = "a secret of 32 bytes for testing"

// otherServers are the servers that compare/install.sh builds.
var otherServers = []otherServer{
	{
		name: "Centrifugo", program: "centrifugo", profiled: true,
		arguments: centrifugoArguments,
		stream: func(topic int, after string) string {
			options := "{}"
			if after != "" {
				options = after
			}
			connect := fmt.Sprintf(`{"subs":{"t%d":%s}}`, topic, options)
			return get("/connection/uni_sse?cf_connect="+url.QueryEscape(connect), "")
		},
		publish: func(topic int, event string) string {
			return post(
				"/api/publish", "application/json", "X-API-Key: "+secret+"\r\n",
				fmt.Sprintf(`{"channel":"t%d","data":%s}`, topic, event),
			)
		},
		position: func(answer []byte) (string, error) {
			var published struct {
				Result struct {
					Offset uint64
					Epoch  string
				}
			}
			err := json.Unmarshal(answer, &published)
			return fmt.Sprintf(
				`{"recover":true,"offset":%d,"epoch":%q}`,
				published.Result.Offset, published.Result.Epoch,
			), err
		},
	},
	{
		name: "Mercure", program: "mercure",
		arguments: func(address, profiles, folder string) ([]string, error) {
			return []string{address, profiles, filepath.Join(folder, "bolt.db"), secret}, nil
		},
		stream: func(topic int, after string) string {
			return get(fmt.Sprintf("/.well-known/mercure?topic=t%d", topic), after)
		},
		publish: func(topic int, event string) string {
			form := url.Values{"topic": {fmt.Sprintf("t%d", topic)}, "data": {event}}
			return post(
				"/.well-known/mercure", "application/x-www-form-urlencoded",
				"Authorization: Bearer "+mercureToken()+"\r\n", form.Encode(),
			)
		},
		position: func(answer []byte) (string, error) { return string(answer), nil },
	},
	{
		name: "ntfy", program: "ntfy",
		arguments: ntfyArguments,
		stream: func(topic int, after string) string {
			path := fmt.Sprintf("/t%d/sse", topic)
			if after != "" {
				path += "?since=" + after
			}
			return get(path, "")
		},
		publish: func(topic int, event string) string {
			return post(fmt.Sprintf("/t%d", topic), "text/plain", "", event)
		},
		position: func(answer []byte) (string, error) {
			var published struct{ ID string }
			err := json.Unmarshal(answer, &published)
			return published.ID, err
		},
	},
}

// centrifugoArguments makes Centrifugo keep the events of a day in memory: without Redis it stores
// nothing on disk.
func centrifugoArguments(address, _, folder string) ([]string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	config := fmt.Sprintf(`{
		"http_server": {"address": %q, "port": %q}, "http_api": {"key": %q},
		"client": {"insecure": true}, "uni_sse": {"enabled": true}, "debug": {"enabled": true},
		"log": {"level": "error"},
		"channel": {"without_namespace": {
			"history_size": 1000000, "history_ttl": "24h", "force_recovery": true
		}}
	}`, host, port, secret)
	path := filepath.Join(folder, "config.json")
	return []string{"--config", path}, os.WriteFile(path, []byte(config), 0o600)
}

// ntfyArguments makes ntfy store messages with the settings that its documentation recommends for
// busy servers, and lifts the limits of a visitor.
func ntfyArguments(address, profiles, folder string) ([]string, error) {
	config := fmt.Sprintf(`
listen-http: %q
profile-listen-http: %q
cache-file: %q
cache-startup-queries: |
  pragma journal_mode = WAL;
  pragma synchronous = normal;
  pragma temp_store = memory;
visitor-subscription-limit: 100000
visitor-request-limit-exempt-hosts: "127.0.0.1"
log-level: error
`, address, profiles, filepath.Join(folder, "cache.db"))
	path := filepath.Join(folder, "server.yml")
	return []string{"serve", "--config", path}, os.WriteFile(path, []byte(config), 0o600)
}

// mercureToken returns a token that may publish to every topic.
func mercureToken() string {
	encode := base64.RawURLEncoding.EncodeToString
	text := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." +
		encode([]byte(`{"mercure":{"publish":["*"]}}`))
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(text))
	return text + "." + encode(mac.Sum(nil))
}
