module tamgabench

go 1.26.0

require tamga v0.0.0

replace tamga => ../
