// Package tables declares the tables of the read models: each with its columns, keys and indexes,
// and with how a row becomes the values of its columns. Inserting, copying, indexing and comparing
// rows all follow these declarations.
//
// The tables themselves are created from the text of package schema; a test holds the declarations
// to that text.
package tables
