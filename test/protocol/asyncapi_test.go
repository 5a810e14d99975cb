package protocol_test

import (
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"hubcloud/hubbridge/protocol"
	"hubcloud/streams/streamstest"
)

// reference is an object that refers to another one.
type reference struct {
	Ref string `yaml:"$ref"`
}

// asyncAPI is the part of an AsyncAPI 3 document that the tests read. Members that it lacks are an
// error, so that a misspelled one is found.
type asyncAPI struct {
	AsyncAPI           string `yaml:"asyncapi"`
	Info               any    `yaml:"info"`
	DefaultContentType string `yaml:"defaultContentType"`
	Servers            map[string]struct {
		Host            string         `yaml:"host"`
		Protocol        string         `yaml:"protocol"`
		ProtocolVersion string         `yaml:"protocolVersion"`
		Description     string         `yaml:"description"`
		Variables       map[string]any `yaml:"variables"`
		Security        []reference    `yaml:"security"`
		Bindings        any            `yaml:"bindings"`
	} `yaml:"servers"`
	Channels map[string]struct {
		Address     string               `yaml:"address"`
		Description string               `yaml:"description"`
		Parameters  map[string]any       `yaml:"parameters"`
		Messages    map[string]reference `yaml:"messages"`
	} `yaml:"channels"`
	Operations map[string]struct {
		Action   string      `yaml:"action"`
		Channel  reference   `yaml:"channel"`
		Summary  string      `yaml:"summary"`
		Messages []reference `yaml:"messages"`
		Reply    *struct {
			Channel  reference   `yaml:"channel"`
			Messages []reference `yaml:"messages"`
		} `yaml:"reply"`
		Bindings struct {
			MQTT struct {
				QoS    int  `yaml:"qos"`
				Retain bool `yaml:"retain"`
			} `yaml:"mqtt"`
		} `yaml:"bindings"`
	} `yaml:"operations"`
	Components struct {
		SecuritySchemes map[string]any `yaml:"securitySchemes"`
		Messages        map[string]struct {
			Name        string    `yaml:"name"`
			Title       string    `yaml:"title"`
			ContentType string    `yaml:"contentType"`
			Payload     reference `yaml:"payload"`
		} `yaml:"messages"`
	} `yaml:"components"`
}

func asyncDocument(t *testing.T) (d asyncAPI, tree any) {
	t.Helper()
	text, err := fs.ReadFile(protocol.Files(), "asyncapi.yaml")
	streamstest.Must(t, err)
	decoder := yaml.NewDecoder(strings.NewReader(string(text)))
	decoder.KnownFields(true)
	streamstest.Must(t, decoder.Decode(&d))
	streamstest.Must(t, yaml.Unmarshal(text, &tree))
	return d, tree
}

// find returns whether a document has the object at a pointer such as #/channels/hello.
func find(tree any, pointer string) bool {
	for _, name := range strings.Split(strings.TrimPrefix(pointer, "#/"), "/") {
		object, _ := tree.(map[string]any)
		if tree = object[name]; tree == nil {
			return false
		}
	}
	return true
}

// eachReference calls do with every $ref of a document.
func eachReference(tree any, do func(target string)) {
	switch node := tree.(type) {
	case map[string]any:
		for name, value := range node {
			if target, ok := value.(string); ok && name == "$ref" {
				do(target)
				continue
			}
			eachReference(value, do)
		}
	case []any:
		for _, value := range node {
			eachReference(value, do)
		}
	}
}

// TestAsyncAPI checks the structure of the document: its version, that each reference leads
// somewhere, that each topic, message and method of the protocol is in it once, and that each
// operation uses messages of its channel.
func TestAsyncAPI(t *testing.T) {
	t.Parallel()
	d, tree := asyncDocument(t)
	if d.AsyncAPI != "3.0.0" || d.DefaultContentType != "application/json" ||
		len(d.Servers) != 1 || d.Servers["broker"].Protocol != "secure-mqtt" {
		t.Errorf("got version %s, servers %v; want 3.0.0 and a broker", d.AsyncAPI, d.Servers)
	}
	eachReference(tree, func(target string) {
		if strings.HasPrefix(target, "#/") {
			if !find(tree, target) {
				t.Errorf("$ref %s leads nowhere", target)
			}
		} else if _, err := fs.Stat(protocol.Files(), target); err != nil {
			t.Errorf("$ref %s: %v", target, err)
		}
	})
	wantMessages := map[string]string{}
	for _, name := range []string{"hello", "ack", "events"} {
		wantMessages[name] = "hub/{hub_id}/" + name
	}
	for _, method := range protocol.Methods() {
		wantMessages["request-"+method] = "hub/{hub_id}/request"
		wantMessages["response-"+method] = "hub/{hub_id}/response/{token}"
	}
	got := map[string]string{}
	for name, channel := range d.Channels {
		for parameter := range channel.Parameters {
			if !strings.Contains(channel.Address, "{"+parameter+"}") {
				t.Errorf("channel %s: the address %s has no %s", name, channel.Address, parameter)
			}
		}
		if strings.Count(channel.Address, "{") != len(channel.Parameters) {
			t.Errorf("channel %s: describes the parameters %v of %s", name, channel.Parameters,
				channel.Address)
		}
		for _, message := range channel.Messages {
			component := d.Components.Messages[strings.TrimPrefix(
				message.Ref, "#/components/messages/",
			)]
			schema := strings.TrimSuffix(
				strings.TrimPrefix(component.Payload.Ref, "schemas/"), ".json",
			)
			got[schema] = channel.Address
			if component.ContentType != "application/json" || component.Name == "" {
				t.Errorf("message %s: lacks a name or the content type", message.Ref)
			}
		}
	}
	if !maps.Equal(got, wantMessages) {
		t.Errorf("messages and their addresses: got %v, want %v", got, wantMessages)
	}
	checkOperations(t, d)
}

func checkOperations(t *testing.T, d asyncAPI) {
	t.Helper()
	var got []string
	for name, operation := range d.Operations {
		channel := strings.TrimPrefix(operation.Channel.Ref, "#/channels/")
		got = append(got, fmt.Sprint(operation.Action, " ", channel))
		messages := operation.Messages
		if operation.Reply != nil {
			messages = append(messages, operation.Reply.Messages...)
		} else if channel == "request" {
			t.Errorf("operation %s: has no reply", name)
		}
		for _, message := range messages {
			if !strings.HasPrefix(message.Ref, "#/channels/"+channel+"/messages/") &&
				!strings.HasPrefix(message.Ref, "#/channels/response/messages/") {
				t.Errorf("operation %s: %s is no message of its channel", name, message.Ref)
			}
		}
		if operation.Bindings.MQTT.QoS > 1 || operation.Bindings.MQTT.Retain {
			t.Errorf("operation %s: QoS or retained: %+v", name, operation.Bindings.MQTT)
		}
	}
	want := []string{"receive ack", "send events", "send hello"}
	for range protocol.Methods() {
		want = append(want, "receive request")
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("operations: got %q, want %q", got, want)
	}
}
