package schema

import (
	"slices"
	"strings"
)

// Definition is the name, keys, columns and indexes of a table.
type Definition struct {
	Name string
	// Projection is the projection that writes the table.
	Projection string
	// Key are the columns of the primary key.
	Key []string
	// Columns are all columns, in the order of the table.
	Columns []Column
	// Indexes are the statements that create the indexes other than the primary key.
	Indexes []string
}

// Column is a column of a table.
type Column struct {
	Name string
	// Type is the column's type in PostgreSQL.
	Type string
}

// AddKey returns the statement that adds the primary key to a table that was created without it.
func (d Definition) AddKey() string {
	return "ALTER TABLE " + d.Name + " ADD PRIMARY KEY (" + strings.Join(d.Key, ", ") + ")"
}

// KeyFirst returns the columns with the primary key's first, in the order of the key.
func (d Definition) KeyFirst() []Column {
	columns := make([]Column, 0, len(d.Columns))
	for _, name := range d.Key {
		i := slices.IndexFunc(d.Columns, func(c Column) bool { return c.Name == name })
		columns = append(columns, d.Columns[i])
	}
	for _, c := range d.Columns {
		if !slices.Contains(d.Key, c.Name) {
			columns = append(columns, c)
		}
	}
	return columns
}

// Tables returns every table but `checkpoints`.
func Tables() []Definition {
	return []Definition{
		Orgs.Definition, Members.Definition, People.Definition, Invitations.Definition,
		Sites.Definition, Hubs.Definition, DeviceLabels.Definition, Keys.Definition,
		Activity.Definition, HubPresence.Definition, ReportedHubs.Definition,
		ReportedDevices.Definition, ReportedChannels.Definition, Books.Definition,
	}
}

// TablesOf returns the tables that a projection writes.
func TablesOf(projection string) []Definition {
	return slices.DeleteFunc(Tables(), func(d Definition) bool { return d.Projection != projection })
}

// Entities returns the tables of the directory but Activity, which grows with every event.
func Entities() []Definition {
	return slices.DeleteFunc(
		TablesOf(Directory), func(d Definition) bool { return d.Name == Activity.Name },
	)
}
