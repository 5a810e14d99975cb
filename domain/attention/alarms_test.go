package attention_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"hubcloud/domain"
	"hubcloud/domain/attention"
)

// label is a line of testdata/labels.txt, which labels.mjs has made.
type label struct{ typeID, typeName, id, text string }

func labels(t *testing.T) (all []label) {
	content, err := os.ReadFile("testdata/labels.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(content)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		all = append(all, label{fields[0], fields[1], fields[2], fields[3]})
	}
	if len(all) != 222 {
		t.Fatalf("labels.txt: got %d labels, want 222", len(all))
	}
	return all
}

// meanings are the events of Z-Wave notifications that are more than events, as type/event.
var meanings = map[attention.Meaning]string{
	"smoke":      "1/1 1/2",
	"co":         "2/1 2/2",
	"gas":        "3/1 3/2 18/1 18/2 18/3 18/4",
	"heat":       "4/1 4/2 4/3 4/4",
	"leak":       "5/1 5/2",
	"emergency":  "10/1 10/2 10/3 10/4 13/7 13/12",
	"alarm":      "7/1 7/2 7/5 7/6 7/12 9/7",
	"tamper":     "7/3 7/4 7/9 7/11 9/6",
	"jammed":     "6/11",
	"not_locked": "6/7 6/8 6/10",
	"fault": "5/11 6/65 6/66 6/67 6/68 6/69 6/70 6/73 6/75 8/6 8/7 8/8 8/9 8/18 9/1 9/2 9/3 9/4 " +
		"12/5 12/7 12/9 12/11 12/13 12/15 12/17 12/19 12/20 12/21 15/3 15/4 15/5 15/6 15/7 17/5 " +
		"21/6 21/7 21/8 21/15 21/17",
	"warning": "4/5 4/6 4/12 4/13 5/3 5/4 5/6 5/7 5/8 5/9 6/16 7/10 8/2 14/1 16/1 16/2 16/3 " +
		"19/5 19/6 21/1 21/2 21/3 21/13 21/14",
	"battery":  "6/74 8/10 8/11 8/14 8/15 8/16 8/17",
	"service":  "1/4 1/5 1/7 1/8 2/4 2/5 2/7 3/4 3/5 3/7 4/8 4/10 4/11 5/5 12/4 18/6 19/3 19/4 21/4 21/5",
	"rejected": "6/19 6/20 6/21 6/47 6/48 6/49 6/50",
}

func report(typ, event any) json.RawMessage {
	value, _ := json.Marshal(map[string]any{"type": typ, "event": event, "active": true})
	return value
}

// Most of the labels that Z-Wave hubs report were alarms by mail, such as "RF lock operation" and
// "Heartbeat", and true faults were hidden, because parts of words were looked for in the event and
// the type was ignored.
func TestEveryNotification(t *testing.T) {
	t.Parallel()
	want := map[string]attention.Meaning{}
	for meaning, ids := range meanings {
		for id := range strings.FieldsSeq(ids) {
			want[id] = meaning
		}
	}
	for _, l := range labels(t) {
		id := l.typeID + "/" + l.id
		meaning, ok := want[id]
		if !ok {
			meaning = attention.MeansEvent
		}
		delete(want, id)
		snake := strings.NewReplacer(" ", "_", "/", "_", ",", "").Replace(strings.ToLower(l.text))
		for _, value := range []json.RawMessage{
			report(l.typeName, l.text), report(strings.ToLower(l.typeName), snake),
			report("", strings.ToUpper(l.text)), report("zwave", l.text), report(l.typeID, l.id),
			report(json.Number(l.typeID), json.Number(l.id)),
		} {
			var r attention.AlarmReport
			if err := json.Unmarshal(value, &r); err != nil {
				t.Fatal(err)
			}
			if got, _ := r.Meaning(); got != meaning {
				t.Errorf("%s %q, %s: got %s, want %s", id, l.text, value, got, meaning)
			}
			c := attention.ChannelState{Key: "alarm", Value: value, ObservedAt: began}
			severity, shown := meaning.Severity()
			wantKind := ""
			if shown {
				wantKind = fmt.Sprintf("%s %s", severity, meaning)
			}
			if got := one(c); got != wantKind {
				t.Errorf("%s: got the condition %q, want %q", value, got, wantKind)
			}
		}
	}
	for id := range want {
		t.Errorf("labels.txt: got no label %s, want one", id)
	}
}

// Words of other radios mean what they say, and what nobody knows is no alarm.
func TestOtherWords(t *testing.T) {
	t.Parallel()
	if got := one(value("alarm", string(report("", "something that nobody knows")))); got != "" {
		t.Errorf("an unknown event: got %q, want nothing", got)
	}
	for _, value := range []json.RawMessage{
		report("smoke", "detected"), report("Smoke Alarm", ""), report("fire", "alarm"),
		report("any", "SmokeDetected"), report("any", "smoke-detected"),
	} {
		got := attention.ChannelState{Key: "alarm", Value: value, ObservedAt: began}
		if one(got) != "alarm smoke" {
			t.Errorf("%s: got %q, want an alarm of smoke", value, one(got))
		}
	}
}

// A mail names what happened also for a hub that reports numbers or only a type.
func TestEventOfAlarm(t *testing.T) {
	t.Parallel()
	for want, value := range map[string]json.RawMessage{
		"Intrusion": report(7, 2), "intrusion": report("intrusion", "detected"),
		"Glass breakage": report("Home Security", "Glass breakage"),
	} {
		got := attention.Of(attention.HubState{
			ID: hub, Status: domain.HubOnline, Devices: []attention.DeviceState{{
				ID: 3, Available: true,
				Channels: []attention.ChannelState{after(value)},
			}},
		})
		if len(got) != 1 || got[0].Event != want {
			t.Errorf("%s: got %+v, want the event %q", value, got, want)
		}
	}
}

// protocolPage is the page that publishes the table.
const protocolPage = "../../hubbridge/protocol/README.md"

// TestPublishedTable checks that the hub protocol's page has the table of what alarms mean.
func TestPublishedTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(protocolPage)
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range publishedRows(t) {
		if !strings.Contains(string(page), row+"\n") {
			t.Errorf("%s: got no line\n%s", protocolPage, row)
		}
	}
}

// publishedRows returns the rows of the published tables: for each type what its events mean, the
// words of any type, and which events end others.
func publishedRows(t *testing.T) (rows []string) {
	content, err := os.ReadFile("notifications.txt")
	if err != nil {
		t.Fatal(err)
	}
	var name string
	var order []string
	events := map[string][]string{}
	flush := func() {
		for _, meaning := range order {
			rows = append(rows, fmt.Sprintf(
				"| %s | `%s` | %s |", name, meaning, strings.Join(events[meaning], "; "),
			))
		}
		order, events = nil, map[string][]string{}
	}
	for line := range strings.Lines(string(content)) {
		line = strings.TrimRight(line, "\n")
		entry, indented := strings.CutPrefix(line, "\t")
		switch {
		case indented && name == "ends":
			by, ended, _ := strings.Cut(entry, ": ")
			rows = append(rows, fmt.Sprintf("| %s | %s |", by, ended))
		case indented:
			fields := strings.SplitN(entry, " ", 3)
			if !slices.Contains(order, fields[1]) {
				order = append(order, fields[1])
			}
			text := fields[2]
			if fields[0] != "-" {
				text = fields[0] + " " + text
			}
			events[fields[1]] = append(events[fields[1]], text)
		case line == "*":
			flush()
			name = "any"
		case line != "" && line[0] != '#':
			flush()
			name = line
		}
	}
	flush()
	return rows
}
