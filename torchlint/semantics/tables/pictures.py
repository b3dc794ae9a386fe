"""What makes or shows pictures: torchvision, TensorBoard, Matplotlib, imageio, OpenCV."""

PICTURES = frozenset(("save_image", "make_grid", "imsave", "imshow", "imwrite", "add_image", "add_images"))
"""The last part of the names of functions and methods that take images, as tensors or arrays."""
