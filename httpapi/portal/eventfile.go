package portal

import (
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"hubcloud/domain"
)

const (
	// exportWriteTimeout is how long a browser may take to accept a part of an export.
	exportWriteTimeout = 10 * time.Second
	// exportFlush is after how many events an export is sent on.
	exportFlush = 500
	// maxExportCommands is how many of a hub's newest commands an export names the senders of.
	maxExportCommands = 5_000
	// maxExport is the most events of an export.
	maxExport = 100_000
	// exportScan is about how many events an export reads in search of those that it has.
	exportScan = 1_000_000
)

// exclusive wraps an export: each member may have one under way.
func exclusive(export handler) handler {
	return func(req *request) error {
		release, err := req.exports.Take(req.spender(), 1)
		if err != nil {
			return err
		}
		defer release()
		return export(req)
	}
}

// place has the names of the place of an event.
type place struct{ Site, Hub, Device string }

// eventFile is a file of events as CSV. It begins with the first event, so that an error before it
// can still be answered.
type eventFile struct {
	req   *request
	name  string
	zone  *time.Location
	out   *CSV
	begun bool
}

func (req *request) eventFile(name string) *eventFile {
	return &eventFile{req: req, name: name, zone: req.zone(), out: NewCSV(req.w)}
}

func (f *eventFile) begin() {
	if f.begun {
		return
	}
	f.begun = true
	f.req.csvHeaders(f.name, f.zone)
	_ = f.out.Row( // a write that fails makes the next one fail
		"Time ("+f.zone.String()+")", "Time (ISO 8601)", "Site", "Hub", "Hub ID", "Device",
		"Device number", "Event", "By", "Severity", "Type", "Data",
	)
}

// add adds an event.
func (f *eventFile) add(entry logEntry, at place) error {
	f.begin()
	number := ""
	if entry.DeviceID != nil {
		number = formatInt(*entry.DeviceID)
	}
	return f.out.Row(
		entry.Time.In(f.zone).Format("2006-01-02 15:04:05.000"),
		entry.Time.UTC().Format(domain.TimeLayout), at.Site, at.Hub, string(entry.HubID),
		at.Device, number, entry.Text, entry.By, entry.Severity.String(),
		entry.Type, string(entry.Data),
	)
}

// end ends the file, which has not all events unless it is complete. It returns an error from before
// the file began. After another one it breaks the connection off, so that the browser reports it.
func (f *eventFile) end(complete bool, err error) error {
	if err != nil && !f.begun {
		return err
	}
	f.begin()
	if err == nil && !complete {
		err = f.out.Row(fmt.Sprintf(
			"The export ends here: it has at most %d events. Narrow the filter or the time.", maxExport,
		))
	}
	if err == nil {
		err = f.out.Flush()
	}
	if err != nil {
		f.req.recordError(err)
		panic(http.ErrAbortHandler) // part of the file is sent
	}
	return nil
}

// csvHeaders sets the header fields of a file of that name, to which the time is added.
func (req *request) csvHeaders(name string, zone *time.Location) {
	setPageHeaders(req.w.Header())
	header := req.w.Header()
	header.Set("Content-Type", "text/csv; charset=utf-8")
	name += "-" + req.info.At.In(zone).Format("2006-01-02-1504") + ".csv"
	header.Set("Content-Disposition", `attachment; filename="`+name+`"`)
}

// CSV is a file for spreadsheets: in UTF-8 with a byte order mark, without which Excel
// takes it for another encoding, and with quotes around every field, which programs that split at
// semicolons or tabs need.
type CSV struct {
	w       http.ResponseWriter
	control *http.ResponseController
	// rows are the rows that are not sent yet, unsent their number.
	rows   []byte
	unsent int
}

// NewCSV returns an empty file, which is the response w.
func NewCSV(w http.ResponseWriter) *CSV {
	return &CSV{w: w, control: http.NewResponseController(w), rows: []byte("\ufeff")}
}

// Row writes a row. Text that a spreadsheet would run as a formula gets an apostrophe.
func (c *CSV) Row(fields ...string) error {
	for i, field := range fields {
		if i > 0 {
			c.rows = append(c.rows, ',')
		}
		field = strings.ReplaceAll(withoutFormula(field), `"`, `""`)
		c.rows = append(append(append(c.rows, '"'), field...), '"')
	}
	c.rows = append(c.rows, "\r\n"...)
	if c.unsent++; c.unsent >= exportFlush {
		return c.Flush()
	}
	return nil
}

// Flush sends on what was written.
func (c *CSV) Flush() error {
	// After an error the connection is closed, and the write fails.
	_ = c.control.SetWriteDeadline(time.Now().Add(exportWriteTimeout))
	_, err := c.w.Write(c.rows)
	c.rows, c.unsent = c.rows[:0], 0
	if err != nil {
		return err
	}
	return c.control.Flush()
}

// formulas matches the beginnings of formulas: at the beginning of a line, also after spaces and
// quotes, and where a program that splits at semicolons would begin a field.
var formulas = regexp.MustCompile(`(^|;)([\s"\x{a0}\x{feff}]*[=+\-@＝＋－＠])`)

// withoutFormula returns a field that spreadsheets show as text, in one line without tabs.
func withoutFormula(field string) string {
	return formulas.ReplaceAllString(domain.PlainLine(field), "$1'$2")
}
